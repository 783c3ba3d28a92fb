package lease

import (
	"context"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// Setup creates the tables fencing_tokens and fencing_leases if they don't exist, and
// checks that existing ones can be used; it needs the privilege to create only for what
// is missing. Call it at every start if you like, also in several processes at once. To
// create the tables by a migration instead, see the package's comment.
//
// A table that can't be used is left as it is; the error says what is wrong.
func (m *Leases) Setup(ctx context.Context) error {
	if err := m.ledger.Setup(ctx); err != nil {
		return err
	}
	if m.dialect.probe(ctx, &m.database) == nil {
		return nil
	}
	if err := m.create(ctx); err != nil {
		return fmt.Errorf("lease: setup: create fencing_leases: %w", err)
	}
	if err := m.dialect.probe(ctx, &m.database); err != nil {
		return fmt.Errorf("lease: setup: the table fencing_leases can't be used: %w", explain(m.dialect, err))
	}
	return nil
}

// create creates the table. On PostgreSQL, IF NOT EXISTS doesn't keep two who
// create it at once from a collision; the one who loses it finds the other's.
func (m *Leases) create(ctx context.Context) error {
	_, err := m.exec(ctx, m.dialect.create())
	if dberr.IsCreated(err) {
		return nil
	}
	return err
}
