package rowlock

import (
	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/setuperr"
)

// explainMissing returns err as a [sqlfence.SetupError] if it says that the table
// rowlocks is missing, or privileges on it or on one of tables; else as it is.
func explainMissing(d dialect, err error, tables ...setuperr.Table) error {
	rowlocks := setuperr.Table{Name: "rowlocks", SQL: "rowlocks", Create: d.create(), Privileges: "SELECT, INSERT, UPDATE, DELETE"}
	if missing, ok := setuperr.Find(err, append(tables, rowlocks)...); ok {
		return &sqlfence.SetupError{Missing: missing.Name, SQL: missing.SQL, Err: err}
	}
	return err
}

// needs is what the statements need of the table: what they write, and all that they
// compare.
func (t *Table) needs() setuperr.Table {
	c := t.columns
	return setuperr.Table{Name: t.table, SQL: t.name,
		Privileges: "SELECT, UPDATE (" + c.by + ", " + c.since + ", " + c.expiry + ")"}
}
