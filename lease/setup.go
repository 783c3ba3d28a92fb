package lease

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
)

// Setup creates the tables fencing_tokens and fencing_leases if there are none,
// and checks that those there can be used; it needs no privilege to create if
// they are there. It may be called at every start, by several processes at once.
// See the package's comment for the tables, to create them by a migration.
func (l *Leases) Setup(ctx context.Context) error {
	if err := l.ledger.Setup(ctx); err != nil {
		return err
	}
	if l.probe(ctx) == nil {
		return nil
	}
	if err := l.create(ctx); err != nil {
		return fmt.Errorf("lease: setup: create fencing_leases: %w", err)
	}
	if err := l.probe(ctx); err != nil {
		return fmt.Errorf("lease: setup: the table fencing_leases can't be used: %w", err)
	}
	return nil
}

// create creates the table. On PostgreSQL, IF NOT EXISTS doesn't keep two who
// create it at once from a collision; the one who loses it finds the other's.
func (l *Leases) create(ctx context.Context) error {
	_, err := l.exec(ctx, l.sql.create)
	if dberr.IsCreated(err) {
		return nil
	}
	return err
}

// probe fails if an attempt would. EXPLAIN plans without running: columns, types,
// the unique index that ON CONFLICT needs, and the privileges are looked up.
func (l *Leases) probe(ctx context.Context) error {
	ignore := func(*sql.Rows) error { return nil }
	id := newLockID()
	if l.dialect == sqlfence.Postgres {
		return l.sendFloored(ctx, l.sql.probe, func(text string) error {
			return l.query(ctx, ignore, text, "probe", id, "", int64(1), nil, false)
		})
	}
	return l.query(ctx, ignore, "EXPLAIN "+l.sql.take, "probe", id, "", int64(1))
}
