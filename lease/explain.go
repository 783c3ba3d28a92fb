package lease

import (
	"context"

	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/setuperr"
)

// explain returns err as a [sqlfence.SetupError] if it says that a table of this
// package's is missing, or privileges on one; else as it is.
func (m *Leases) explain(ctx context.Context, err error) error {
	return dialectopt.Explain(ctx, m.db, err, m.needs(),
		setuperr.Ledger(m.dialect, m.options.Schema, "SELECT, INSERT, UPDATE"))
}

// needs is what the statements need of the leases' table.
func (m *Leases) needs() setuperr.Table {
	return setuperr.Own(m.dialect, m.options.Schema, "fencing_leases", m.dialect.create,
		"SELECT, INSERT, UPDATE, DELETE")
}
