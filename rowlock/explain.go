package rowlock

import (
	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/missing"
)

// explainMissing returns err as a [sqlfence.SetupError] if it says that the table
// rowlocks is missing, or privileges on it or on one of tables; else as it is.
func explainMissing(d dialect, err error, tables ...missing.Table) error {
	rowlocks := missing.Table{Name: "rowlocks", SQL: "rowlocks", Create: d.create(), Privileges: "SELECT, INSERT, UPDATE, DELETE"}
	if thing, ok := missing.Find(err, append(tables, rowlocks)...); ok {
		return &sqlfence.SetupError{Missing: thing.Name, SQL: thing.SQL, Err: err}
	}
	return err
}

// needs is what the statements need of the table: what they write, and all that they
// compare.
func (t *Table) needs() missing.Table {
	c := t.columns
	return missing.Table{Name: t.table, SQL: t.name,
		Privileges: "SELECT, UPDATE (" + c.by + ", " + c.since + ", " + c.expiry + ")"}
}
