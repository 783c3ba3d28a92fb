//go:build unix

package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlfence/sqlfence/examples/internal/mysql"
	"github.com/sqlfence/sqlfence/examples/internal/sqlite"
	"github.com/sqlfence/sqlfence/lease"
)

// A source is a fresh database that nobody else uses: an SQLite file in a
// temporary folder, a PostgreSQL schema, or a MySQL database. drop removes it.
type source struct {
	driver, dsn string
	drop        func() error
}

func fresh(ctx context.Context, dsn string) (*source, error) {
	if dsn == "" {
		dir, err := os.MkdirTemp("", "sqlfence-worker-")
		if err != nil {
			return nil, err
		}
		return &source{sqlite.Driver, sqlite.DSN(filepath.Join(dir, "jobs.db")), func() error { return os.RemoveAll(dir) }}, nil
	}
	if strings.HasPrefix(dsn, mysql.Scheme) {
		dsn, drop, err := mysql.Fresh(ctx, dsn, "sqlfence_worker_")
		return &source{mysql.Driver, dsn, drop}, err
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, err
	}
	schema := "sqlfence_worker_" + strings.ToLower(rand.Text()[:10])
	if _, err := admin.ExecContext(ctx, "CREATE SCHEMA "+schema); err != nil {
		return nil, errors.Join(err, admin.Close())
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return &source{"pgx", u.String(), func() error {
		// Interrupted or not, the schema goes: hence a context of its own.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, err := admin.ExecContext(ctx, "DROP SCHEMA "+schema+" CASCADE")
		return errors.Join(err, admin.Close())
	}}, nil
}

const jobs = 5

// create makes the queue and the tables of the leases, and returns the bare
// database. A migration would do the same.
func (s *source) create(ctx context.Context) (*sql.DB, error) {
	db, err := sql.Open(s.driver, s.dsn)
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

// staleWrites counts the jobs that were finished more than once, and fails if
// one wasn't finished.
func staleWrites(ctx context.Context, db *sql.DB) (twice int, err error) {
	var open int
	err = db.QueryRowContext(ctx, "SELECT count(CASE WHEN finished > 1 THEN 1 END), count(CASE WHEN finished = 0 THEN 1 END) FROM jobs").Scan(&twice, &open)
	if err == nil && open > 0 {
		err = fmt.Errorf("%d jobs were not finished", open)
	}
	return twice, err
}
