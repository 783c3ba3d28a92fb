package tokens

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
)

// Repair advances every token below floor to floor, and makes new names start above floor. It never lowers a
// token. Either all tokens are advanced or none.
//
// Call Repair when issued tokens may have been lost, before the application runs again: for example after
// restoring a dump, or after a failover on MySQL or MariaDB. docs/tokens.md lists the cases and how to choose
// the floor, which must be at least the highest token that may have been issued. Holders of tokens below the
// floor then need new tokens. Repair waits for open transactions that wrote under the ledger's guard, and
// blocks new ones until it has finished.
//
// Errors: [sqlfence.ErrInvalid] for a floor below 1, or above [sqlfence.WarnToken] without [AboveWarnToken];
// [sqlfence.ErrTokenLimit] for a floor above [sqlfence.MaxToken]; or the database's.
func (s *Store) Repair(ctx context.Context, floor int64, opts ...RepairOption) error {
	r := repair{report: new(Repaired)}
	for _, opt := range opts {
		opt(&r)
	}
	switch {
	case floor < 1:
		return fmt.Errorf("%w: repair: a floor of %d, the lowest is 1", sqlfence.ErrInvalid, floor)
	case floor > sqlfence.MaxToken:
		return fmt.Errorf("%w: a floor of %d, the highest is %d", sqlfence.ErrTokenLimit, floor,
			int64(sqlfence.MaxToken))
	case floor > sqlfence.WarnToken && !r.high && !r.dry:
		return fmt.Errorf("%w: repair: a floor of %d uses up %.1f %% of the tokens of all names, also of new "+
			"ones, for ever; if that is meant, pass tokens.AboveWarnToken",
			sqlfence.ErrInvalid, floor, percent(floor))
	}
	if r.dry {
		return s.planRepair(ctx, floor, r.report)
	}
	send := func(start string) error {
		return s.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
			// Meanwhile no client adds a name without having seen the new start.
			if err := execAll(ctx, tx, s.dialect.lock); err != nil {
				return err
			}
			if err := execAll(ctx, tx, []string{start}, floor); err != nil {
				return err
			}
			if r.reports {
				var err error
				if r.report.Names, err = s.below(ctx, tx, floor); err != nil {
					return err
				}
			}
			return execAll(ctx, tx, []string{s.dialect.raise}, floor)
		})
	}
	err := s.sendFloored(ctx, s.dialect.start, send)
	if err == nil && r.reports {
		r.report.NewAbove, err = s.queryFloored(ctx, s.dialect.floor)
	}
	if err != nil {
		return fmt.Errorf("tokens: repair: %w", s.explain(ctx, err))
	}
	return nil
}

// A RepairOption is an option of [Store.Repair].
type RepairOption func(*repair)

type repair struct {
	high, dry, reports bool
	report             *Repaired
}

// AboveWarnToken allows a floor above [sqlfence.WarnToken]. With it all names have used up a tenth
// of their tokens or more, for ever.
func AboveWarnToken() RepairOption { return func(r *repair) { r.high = true } }

// ReportTo has Repair note what it raises. With DryRun it is what Repair would raise.
func ReportTo(report *Repaired) RepairOption {
	return func(r *repair) { r.report, r.reports = report, true }
}

// DryRun has Repair change nothing; see [ReportTo].
func DryRun() RepairOption { return func(r *repair) { r.dry = true } }

// Repaired is what [Store.Repair] has raised, or would.
type Repaired struct {
	Names    []Rise // ordered by name; those at the floor or above aren't raised, nor are those without a token
	NewAbove int64  // the number that tokens of new names begin above
}

// A Rise is what becomes of the newest token of a name.
type Rise struct {
	Name     string
	From, To int64
}

// percent returns how much of the tokens that a name can have are below a token, in percent of [sqlfence.MaxToken].
func percent(token int64) float64 { return 100 * float64(token) / float64(sqlfence.MaxToken) }

// planRepair notes what Repair would raise.
func (s *Store) planRepair(ctx context.Context, floor int64, report *Repaired) (err error) {
	report.NewAbove, err = s.queryFloored(ctx, s.dialect.floor)
	if err == nil {
		report.NewAbove = max(report.NewAbove, floor)
		report.Names, err = s.below(ctx, s.db, floor)
	}
	if err != nil {
		return fmt.Errorf("tokens: repair: %w", s.explain(ctx, err))
	}
	return nil
}

// below returns the names with a token below a floor.
func (s *Store) below(ctx context.Context, db dialectopt.Queries, floor int64) (found []Rise, err error) {
	err = dialectopt.EachRow(ctx, db, func(rows *sql.Rows) error {
		r := Rise{To: floor}
		err := rows.Scan(&r.Name, &r.From)
		found = append(found, r)
		return err
	}, s.dialect.below, floor)
	return found, err
}
