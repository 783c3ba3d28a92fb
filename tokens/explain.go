package tokens

import (
	"context"

	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/setuperr"
)

// explain returns err as a [sqlfence.SetupError] if it says that the ledger is missing, or
// privileges on it or on one of others; else as it is.
func (s *Store) explain(ctx context.Context, err error, others ...setuperr.Table) error {
	return dialectopt.Explain(ctx, s.db, err, append(others, s.needs())...)
}

// needs is what the statements need of the ledger.
func (s *Store) needs() setuperr.Table {
	return setuperr.Ledger(s.dialect, s.options.Schema, "SELECT, INSERT, UPDATE")
}
