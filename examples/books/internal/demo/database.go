package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlfence/sqlfence/examples/internal/mysql"
	"github.com/sqlfence/sqlfence/examples/internal/removal"
	"github.com/sqlfence/sqlfence/examples/internal/sqlite"
)

// A source is a fresh, empty database of the example's own: an SQLite file in a temporary folder,
// a PostgreSQL schema, a MySQL database or a keyspace of Vitess. drop removes it, or its tables.
type source struct {
	driver, dsn string
	drop        func() error
	unverified  bool // package verify doesn't work there
}

func newSQLite(driver string) (*source, error) {
	dir, err := os.MkdirTemp("", "sqlfence-books-")
	if err != nil {
		return nil, err
	}
	return &source{
		driver: driver,
		dsn:    sqlite.DSN(filepath.Join(dir, "books.db")),
		drop:   func() error { return os.RemoveAll(dir) },
	}, nil
}

func newPostgres(ctx context.Context, dsn string) (*source, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	admin := stdlib.OpenDB(*cfg)
	schema := "sqlfence_books_" + strings.ToLower(rand.Text()[:10])
	if _, err := admin.ExecContext(ctx, "CREATE SCHEMA "+schema); err != nil {
		return nil, errors.Join(err, admin.Close())
	}
	cfg.RuntimeParams["search_path"] = schema
	registered := stdlib.RegisterConnConfig(cfg)
	return &source{
		driver: "pgx",
		dsn:    registered,
		drop: func() error {
			stdlib.UnregisterConnConfig(registered)
			ctx, cancel := removal.Context()
			defer cancel()
			_, err := admin.ExecContext(ctx, "DROP SCHEMA "+schema+" CASCADE")
			return errors.Join(err, admin.Close())
		},
	}, nil
}

// newMySQL creates a temporary database on a server of MySQL or MariaDB, or takes an empty keyspace of Vitess.
func newMySQL(ctx context.Context, dsn string) (*source, error) {
	db, err := mysql.Fresh(ctx, dsn, "sqlfence_books_")
	if err != nil {
		return nil, err
	}
	return &source{driver: mysql.Driver, dsn: db.DSN, drop: db.Drop, unverified: db.Keyspace}, nil
}

// create makes the table with its one book. It uses the base driver without sqlfence, as a migration would. The table
// has two columns in addition to the blog's columns. fence_token is the fence column, which the application never
// names. writes numbers the row's writes, so that the program can find the order in which the database applied the
// writes.
func (s *source) create(ctx context.Context) error {
	db, err := sql.Open(s.driver, s.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, stmt := range []string{
		`CREATE TABLE books (
			id          bigint PRIMARY KEY,
			name        text   NOT NULL,
			price       bigint NOT NULL,
			writes      bigint NOT NULL DEFAULT 0,
			fence_token bigint NOT NULL DEFAULT 0
		)`,
		`INSERT INTO books (id, name, price) VALUES (1, 'Fencing for beginners', 10)`,
	} {
		if _, err := db.ExecContext(ctx, stmt); err != nil {
			return fmt.Errorf("create books: %w", err)
		}
	}
	return nil
}
