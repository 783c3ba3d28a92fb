package lease

import (
	"context"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// Setup creates the tables fencing_tokens and fencing_leases if there are none,
// and checks that those there can be used; it needs no privilege to create if
// they are there. It may be called at every start, by several processes at once.
// See the package's comment for the tables, to create them by a migration.
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
		return fmt.Errorf("lease: setup: the table fencing_leases can't be used: %w", err)
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
