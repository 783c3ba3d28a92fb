package tokens

import (
	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/setuperr"
)

// explain returns err as a [sqlfence.SetupError] if it says that the ledger is missing, or
// privileges on it or on one of others; else as it is.
func (s *Store) explain(err error, others ...setuperr.Table) error {
	if missing, ok := setuperr.Find(err, append(others, setuperr.Ledger(s.dialect, "SELECT, INSERT, UPDATE"))...); ok {
		return &sqlfence.SetupError{Missing: missing.Name, SQL: missing.SQL, Err: err}
	}
	return err
}
