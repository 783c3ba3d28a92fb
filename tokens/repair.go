package tokens

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// Repair raises every token below floor to floor, and makes names that are not in the
// ledger yet begin at floor + 1 or higher. It never lowers a token. Either all tokens
// are raised or none.
//
// Call it when tokens may have been lost, before the application runs again: after a
// restore from a dump, a snapshot of the disk or a copy of a SQLite file, and after a
// failover of a server whose timeline can't be read (see the package's comment). The
// floor must be at least the highest token that may have been issued: take the highest
// in the rows' fence columns, in the logs and in other copies of the ledger, and add some
// room. After PostgreSQL's pg_upgrade, and after a move to a new cluster, whose timelines
// begin at 1 again, call it with the highest token in fencing_tokens: later timelines
// then count from there.
//
// Tables with [sqlfence.Ledger] refuse older tokens from then on, so their holders need
// new ones. The same is true of tokens adopted from another service, until they pass
// the floor. Repair waits for open transactions that have written under the ledger's
// guard, and blocks new ones until it is done.
//
// Errors: [sqlfence.ErrInvalid] for a floor below 1, [sqlfence.ErrTokenLimit] for one
// above [sqlfence.MaxToken], or the database's.
func (s *Store) Repair(ctx context.Context, floor int64) error {
	switch {
	case floor < 1:
		return fmt.Errorf("%w: repair: a floor of %d, the lowest is 1", sqlfence.ErrInvalid, floor)
	case floor > sqlfence.MaxToken:
		return fmt.Errorf("%w: a floor of %d, the highest is %d", sqlfence.ErrTokenLimit, floor, int64(sqlfence.MaxToken))
	}
	send := func(start string) error {
		return s.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
			// Nobody adds a name meanwhile who hasn't seen the new start.
			if err := execAll(ctx, tx, s.dialect.lock); err != nil {
				return err
			}
			for _, text := range []string{start, s.dialect.raise} {
				if _, err := tx.ExecContext(trusted.Context(ctx, text), text, floor); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := s.sendFloored(ctx, s.dialect.start, send); err != nil {
		return fmt.Errorf("tokens: repair: %w", s.explain(err))
	}
	return nil
}
