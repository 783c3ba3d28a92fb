package lease

import (
	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/setuperr"
)

// explain returns err as a [sqlfence.SetupError] if it says that a table of this
// package's is missing, or privileges on one; else as it is.
func explain(d dialect, err error) error {
	missing, ok := setuperr.Find(err,
		setuperr.Table{Name: "fencing_leases", SQL: "fencing_leases", Create: d.create().text, Privileges: "SELECT, INSERT, UPDATE, DELETE"},
		setuperr.Ledger(d.text(), "SELECT, INSERT, UPDATE"))
	if ok {
		return &sqlfence.SetupError{Missing: missing.Name, SQL: missing.SQL, Err: err}
	}
	return err
}
