package lease

import (
	"context"
	"database/sql"

	"github.com/sqlfence/sqlfence"
)

// Tx acquires the lease of key as [Leases.Do] does, and calls f in a transaction that commits only if no other
// process has taken over, whatever f executes (see [tokens.Store.Hold]). No table must be registered, and db needs no
// fence. While the transaction is open, no other process gets a token for the key, even after the TTL. The pool needs
// two connections, because heartbeats use their own.
//
// After a serialization failure, a deadlock or another temporary error, Tx runs f again in a new transaction. So f
// must have no effects outside of the transaction, must not end it, must return the errors of its statements, and
// must roll back only to its own savepoints. On MySQL and MariaDB, f must not execute DDL, TRUNCATE or a procedure
// that commits, because they end the transaction; a fenced database refuses them.
//
// If the lease is lost, the transaction is rolled back and the error is [sqlfence.ErrStale], usually also
// ErrLeaseLost. If the response to COMMIT is lost, the error is [sqlfence.ErrUnknownOutcome]. Other errors are those
// of Acquire, of Hold and of f.
func (m *Leases) Tx(
	ctx context.Context, key string, f func(ctx context.Context, tx *sql.Tx) error, terms ...Term,
) error {
	return m.Do(ctx, key, func(ctx context.Context) error {
		l, _ := FromContext(ctx)
		return sqlfence.Retry(ctx, m.db, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
			if err := m.ledger.Hold(ctx, tx, l.Token()); err != nil {
				return err
			}
			return f(ctx, tx)
		})
	}, terms...)
}
