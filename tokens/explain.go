package tokens

import (
	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/missing"
)

// ledgerTable is what this package needs of the ledger.
var ledgerTable = missing.Ledger("SELECT, INSERT, UPDATE")

// explain returns err as a [sqlfence.SetupError] if it says that the ledger is missing, or
// privileges on it or on one of others; else as it is.
func explain(err error, others ...missing.Table) error {
	if thing, ok := missing.Find(err, append(others, ledgerTable)...); ok {
		return &sqlfence.SetupError{Missing: thing.Name, SQL: thing.SQL, Err: err}
	}
	return err
}
