package tokens

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/own"
)

// Repair raises every token that is lower than floor to it, and has the names that
// the ledger doesn't know begin above it: their first token is floor + 1 or higher. It
// never lowers a token. All are raised, or none.
//
// It is for what the ledger can't know by itself: call it after a restore from a
// dump, a snapshot of the disk or a copy of a SQLite file, and after a failover where
// the server doesn't tell its timeline (the package's comment says when), before the
// application runs again. Let floor be higher than every token that may have been
// issued: the highest that the rows' marks, the logs or another copy of the ledger
// show, with some room. After PostgreSQL's pg_upgrade, and after a move to a new
// cluster, whose timelines begin at 1 again, call it with the highest token that
// fencing_tokens holds: the timelines to come then count from there.
//
// Whoever holds an older token is stale from then on where [sqlfence.Ledger] guards,
// and has to get a new one; so are the tokens of another service that were adopted,
// until they pass floor. It waits for the transactions that have written under the
// ledger's guard, and holds off those that want to.
//
// Errors: [sqlfence.ErrInvalid] for a floor below 1, [sqlfence.ErrTokenLimit] for one
// over [sqlfence.MaxToken], or the database's own.
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
				if _, err := tx.ExecContext(own.Context(ctx, text), text, floor); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := s.sendFloored(ctx, s.dialect.start, send); err != nil {
		return fmt.Errorf("tokens: repair: %w", err)
	}
	return nil
}
