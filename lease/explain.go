package lease

import (
	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/missing"
)

// explain returns err as a [sqlfence.SetupError] if it says that a table of this
// package's is missing, or privileges on one; else as it is.
func explain(d dialect, err error) error {
	thing, ok := missing.Find(err,
		missing.Table{Name: "fencing_leases", SQL: "fencing_leases", Create: d.create().text, Privileges: "SELECT, INSERT, UPDATE, DELETE"},
		missing.Ledger(d.text(), "SELECT, INSERT, UPDATE"))
	if ok {
		return &sqlfence.SetupError{Missing: thing.Name, SQL: thing.SQL, Err: err}
	}
	return err
}
