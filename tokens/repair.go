package tokens

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
)

// Repair advances every token below floor to floor, and makes new names start above floor. Either all tokens are
// advanced or none. It never lowers a token.
//
// Call Repair when issued tokens may have been lost, before the application runs again, such as after restoring a dump
// (docs/tokens.md lists the cases). The floor must be at least the highest token that may have been issued. Holders of
// tokens below it need new tokens. Repair waits for open transactions that wrote under the ledger's guard, and blocks
// new ones.
//
// Errors: [sqlfence.ErrInvalid] for a floor below 1, or above [sqlfence.WarnToken] without [AboveWarnToken];
// [sqlfence.ErrTokenLimit] for a floor above [sqlfence.MaxToken].
func (s *Store) Repair(ctx context.Context, floor int64, opts ...RepairOption) (Repaired, error) {
	var r repair
	for _, opt := range opts {
		opt(&r)
	}
	switch {
	case floor < 1:
		return Repaired{}, fmt.Errorf("%w: repair: a floor of %d, the lowest is 1", sqlfence.ErrInvalid, floor)
	case floor > sqlfence.MaxToken:
		return Repaired{}, fmt.Errorf("%w: a floor of %d, the highest is %d", sqlfence.ErrTokenLimit, floor,
			int64(sqlfence.MaxToken))
	case floor > sqlfence.WarnToken && !r.high && !r.dry:
		return Repaired{}, fmt.Errorf("%w: repair: a floor of %d uses up %.1f %% of the tokens of all names, also of new "+
			"ones, for ever; if that is meant, pass tokens.AboveWarnToken",
			sqlfence.ErrInvalid, floor, percent(floor))
	}
	repaired, err := s.repair(ctx, floor, r.dry)
	if err != nil {
		return Repaired{}, fmt.Errorf("tokens: repair: %w", s.explain(ctx, err))
	}
	return repaired, nil
}

// A RepairOption is an option of [Store.Repair].
type RepairOption func(*repair)

type repair struct{ high, dry bool }

// AboveWarnToken allows a floor above [sqlfence.WarnToken], which uses up a tenth of all tokens or more, for ever.
func AboveWarnToken() RepairOption { return func(r *repair) { r.high = true } }

// DryRun makes Repair change nothing and return what it would change.
func DryRun() RepairOption { return func(r *repair) { r.dry = true } }

// Repaired is what [Store.Repair] changed.
type Repaired struct {
	Tokens   []sqlfence.Token // the tokens that were below the floor, ordered by name
	NewAbove int64            // new names begin above it
}

func (s *Store) repair(ctx context.Context, floor int64, dry bool) (repaired Repaired, err error) {
	before, err := s.lowerBound(ctx)
	if err != nil {
		return Repaired{}, err
	}
	repaired.NewAbove = max(before, floor)
	if dry {
		repaired.Tokens, err = s.below(ctx, s.db, floor)
		return repaired, err
	}
	err = s.sendBounded(ctx, s.dialect.start, func(start string) error {
		return s.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
			if err := execAll(ctx, tx, s.dialect.lock); err != nil {
				return err
			}
			if err := execAll(ctx, tx, []string{start}, floor); err != nil {
				return err
			}
			var err error
			if repaired.Tokens, err = s.below(ctx, tx, floor); err != nil {
				return err
			}
			return execAll(ctx, tx, []string{s.dialect.advance}, floor)
		})
	})
	return repaired, err
}

func percent(token int64) float64 { return 100 * float64(token) / float64(sqlfence.MaxToken) }

func (s *Store) below(ctx context.Context, db dialectopt.Queries, floor int64) (found []sqlfence.Token, err error) {
	err = dialectopt.EachRow(ctx, db, func(rows *sql.Rows) error {
		var t sqlfence.Token
		err := rows.Scan(&t.Name, &t.Value)
		found = append(found, t)
		return err
	}, s.dialect.below, floor)
	return found, err
}
