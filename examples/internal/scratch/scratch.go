// Package scratch creates a temporary database for an example.
package scratch

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"

	"github.com/sqlfence/sqlfence/examples/internal/mysql"
	"github.com/sqlfence/sqlfence/examples/internal/removal"
	"github.com/sqlfence/sqlfence/examples/internal/sqlite"
)

// A Database is an SQLite file in a temporary folder, a PostgreSQL schema, or a MySQL database. Drop removes it.
type Database struct {
	Driver, DSN string
	Drop        func() error
}

// New creates a database for the example called name. If dsn is empty, that is an SQLite file; if dsn is the URL of a
// PostgreSQL database, a schema in it; if dsn is the URL of a MySQL server, a database on it.
func New(ctx context.Context, name, dsn string) (*Database, error) {
	if dsn == "" {
		dir, err := os.MkdirTemp("", "sqlfence-"+name+"-")
		if err != nil {
			return nil, err
		}
		return &Database{sqlite.Driver, sqlite.DSN(filepath.Join(dir, name+".db")), func() error { return os.RemoveAll(dir) }}, nil
	}
	if strings.HasPrefix(dsn, mysql.Scheme) {
		db, err := mysql.Fresh(ctx, dsn, "sqlfence_"+name+"_")
		if err != nil {
			return nil, err
		}
		return &Database{mysql.Driver, db.DSN, db.Drop}, nil
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, err
	}
	schema := "sqlfence_" + name + "_" + strings.ToLower(rand.Text()[:10])
	if _, err := admin.ExecContext(ctx, "CREATE SCHEMA "+schema); err != nil {
		return nil, errors.Join(err, admin.Close())
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return &Database{"pgx", u.String(), func() error {
		ctx, cancel := removal.Context()
		defer cancel()
		_, err := admin.ExecContext(ctx, "DROP SCHEMA "+schema+" CASCADE")
		return errors.Join(err, admin.Close())
	}}, nil
}
