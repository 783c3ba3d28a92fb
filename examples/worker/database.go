//go:build unix

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence/examples/internal/scratch"
	"github.com/sqlfence/sqlfence/lease"
)

const jobs = 5

// create creates the table jobs of the queue and the tables of package lease, and returns the database, opened without
// sqlfence. In a real program a migration would create the tables.
func create(ctx context.Context, source *scratch.Database) (*sql.DB, error) {
	db, err := sql.Open(source.Driver, source.DSN)
	if err != nil {
		return nil, err
	}
	leases, err := lease.New(db)
	if err == nil {
		err = leases.Setup(ctx)
	}
	if err == nil {
		_, err = db.ExecContext(ctx, "CREATE TABLE jobs (id bigint PRIMARY KEY, finished bigint NOT NULL DEFAULT 0, worker text)")
	}
	for id := 1; id <= jobs && err == nil; id++ {
		_, err = db.ExecContext(ctx, fmt.Sprintf("INSERT INTO jobs (id) VALUES (%d)", id))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create the queue: %w", err), db.Close())
	}
	return db, nil
}

// staleWrites counts the jobs that were finished more than once, and fails if one wasn't finished.
func staleWrites(ctx context.Context, db *sql.DB) (twice int, err error) {
	var open int
	err = db.QueryRowContext(ctx, "SELECT count(CASE WHEN finished > 1 THEN 1 END), count(CASE WHEN finished = 0 THEN 1 END) FROM jobs").Scan(&twice, &open)
	if err == nil && open > 0 {
		err = fmt.Errorf("%d jobs were not finished", open)
	}
	return twice, err
}
