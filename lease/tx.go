package lease

import (
	"context"
	"database/sql"

	"github.com/sqlfence/sqlfence"
)

// Tx does work in one transaction under the lease of key: it takes the lease and keeps it as [Leases.Do] does, begins a
// transaction, holds the lease's token in the transaction ([github.com/sqlfence/sqlfence/tokens.Store.Hold]), calls f,
// and commits. So what f writes is committed only if no other process has taken over, whatever the statements are: they
// need no registered table, and the database needs no fence. f has to return the errors of its statements: on MySQL and
// MariaDB a deadlock ends the transaction, and what follows commits by itself. DDL, TRUNCATE and procedures that commit
// do so there as well; a fenced database refuses them.
//
//	err := leases.Tx(ctx, "report", func(ctx context.Context, tx *sql.Tx) error {
//		_, err := tx.ExecContext(ctx, "CALL write_report()")
//		return err
//	})
//
// After a serialization failure, a deadlock or another temporary error, Tx runs f again in a new transaction, under the
// same lease, as [sqlfence.Retry] does. So f must have no effects outside of the transaction, must not end the
// transaction, and must not roll back to savepoints that it hasn't set.
//
// If the lease is lost, the context of f ends and the transaction is rolled back. The error is then [ErrLeaseLost] and
// [sqlfence.ErrStale], or ErrStale alone if the database has noticed it first. If the answer to the commit is lost, the
// error is [sqlfence.ErrUnknownOutcome]. Other errors are those of Do, of Hold and of f.
//
// Another process that waits for the lease gets the next token when the transaction has ended, so a transaction that
// takes longer than the ttl holds up the others. Tx takes a connection of the pool while heartbeats need another: the
// pool must have two.
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
