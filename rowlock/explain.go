package rowlock

import (
	"context"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/setuperr"
)

// explain adds to an error what failed, and what the database is missing if the error says so. A refusal says
// that itself.
func (t *Table) explain(ctx context.Context, do string, err error) error {
	if err == nil || isRefusal(err) {
		return err
	}
	var db querier = t.db
	if t.tx != nil {
		db = t.tx
	}
	err = dialectopt.Explain(ctx, db, err, t.needs(), rowlocks(t.dialect, t.options.Schema))
	return fmt.Errorf("rowlock: %s: table %q: %w", do, t.name, err)
}

// explain returns err as a [sqlfence.SetupError] if it says that the table rowlocks is missing, or privileges
// on it; else as it is.
func (m *Manager) explain(ctx context.Context, err error) error {
	return dialectopt.Explain(ctx, m.db, err, rowlocks(m.dialect, m.options.Schema))
}

// rowlocks is what the statements need of the table rowlocks.
func rowlocks(d *dialect, schema string) setuperr.Table {
	return setuperr.Own(d, schema, "rowlocks", d.create, "SELECT, INSERT, UPDATE, DELETE")
}

// needs is what the statements need of the table: what they write, and all that they
// compare.
func (t *Table) needs() setuperr.Table {
	c := t.columns
	return setuperr.Table{Name: t.table, SQL: t.name,
		Privileges: "SELECT, UPDATE (" + c.by + ", " + c.since + ", " + c.expiry + ")"}
}
