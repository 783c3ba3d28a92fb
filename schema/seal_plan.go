package schema

import (
	"context"
	"database/sql"
	"fmt"
)

// A TablePlan has the statements by which [Seal] or [Unseal] would change one table now.
type TablePlan struct {
	Table      string   // as registered
	Statements []string // in their order, for one connection
}

// SealPlan returns the statements that [Seal] would run now, for people to read, or for a migration. Unlike
// [SealSQL] it looks at the tables, and refuses those that Seal would refuse. Nothing is changed; in SQLite the table
// is looked at in a transaction that is rolled back, which waits for a writer if the table is sealed already.
//
// In SQLite the statements are in a transaction of their own, and hold for the table as it is: let nobody change its
// indexes and triggers until they have been run. Errors are as for Seal.
func SealPlan(ctx context.Context, db *sql.DB) ([]TablePlan, error) {
	return planOf(ctx, db, nil, false)
}

// UnsealPlan returns the statements that [Unseal] would run now for these tables, or for all that are registered with
// [sqlfence.Sealed]. Nothing is changed. In SQLite they hold for the table as it is, as those of [SealPlan] do. Errors
// are as for Unseal.
func UnsealPlan(ctx context.Context, db *sql.DB, tables ...string) ([]TablePlan, error) {
	return planOf(ctx, db, tables, true)
}

func planOf(ctx context.Context, db *sql.DB, names []string, unseals bool) (plans []TablePlan, err error) {
	tables, err := sealed(db, names)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		part, s, err := prepared(ctx, db, t, unseals)
		if err != nil {
			return nil, err
		}
		statements, err := statementsOf(ctx, db, part, s, unseals)
		if err != nil {
			return nil, fmt.Errorf("schema: table %q: %w", t.Name, err)
		}
		plans = append(plans, TablePlan{t.Name, statements})
	}
	return plans, nil
}

func statementsOf(ctx context.Context, db *sql.DB, part sealer, s sealing, unseals bool) ([]string, error) {
	t, looks := part.(transactor)
	switch {
	case looks:
	case unseals:
		return part.unseal(s), nil
	default:
		return part.seal(s), nil
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return t.plan(ctx, conn, s, unseals)
}
