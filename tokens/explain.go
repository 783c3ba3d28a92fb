package tokens

import (
	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/missing"
)

// explain returns err as a [sqlfence.SetupError] if it says that the ledger is missing, or
// privileges on it or on one of others; else as it is.
func (s *Store) explain(err error, others ...missing.Table) error {
	if thing, ok := missing.Find(err, append(others, missing.Ledger(s.dialect, "SELECT, INSERT, UPDATE"))...); ok {
		return &sqlfence.SetupError{Missing: thing.Name, SQL: thing.SQL, Err: err}
	}
	return err
}
