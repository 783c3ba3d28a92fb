package schema

import (
	"context"
	"database/sql"

	"github.com/sqlfence/sqlfence/internal/dialectopt"
)

// A TablePlan has the statements that [Seal] or [Unseal] sends to change one table.
type TablePlan struct {
	Table      string   // as registered
	Statements []string // in their order, for one connection
}

// SealPlan returns the statements that [Seal] would run now, for people to read, or for a
// migration. Unlike [SealSQL] it looks at the tables, and refuses those that Seal would refuse.
// Nothing is changed. Errors are as for Seal.
func SealPlan(ctx context.Context, db *sql.DB) ([]TablePlan, error) {
	return planOf(ctx, db, nil, false)
}

// UnsealPlan returns the statements that [Unseal] would run now for these tables, or for all that are registered with
// [sqlfence.Sealed]. Nothing is changed. Errors
// are as for Unseal.
func UnsealPlan(ctx context.Context, db *sql.DB, tables ...string) ([]TablePlan, error) {
	return planOf(ctx, db, tables, true)
}

func planOf(ctx context.Context, db *sql.DB, names []string, unseals bool) (plans []TablePlan, err error) {
	defer func() { err = dialectopt.Ended(ctx, err) }()
	tables, err := sealed(db, names)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		part, s, err := prepared(ctx, db, t, unseals)
		if err != nil {
			return nil, err
		}
		statements := part.seal(s)
		if unseals {
			statements = part.unseal(s)
		}
		plans = append(plans, TablePlan{t.Name, statements})
	}
	return plans, nil
}
