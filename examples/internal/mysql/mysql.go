// Package mysql makes databases for the examples on a server of MySQL or MariaDB.
package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/examples/internal/removal"
)

const (
	// Driver is the name of the driver.
	Driver = "mysql"

	// Scheme is the beginning of a server's URL.
	Scheme = "mysql://"
)

// A Database is a database of an example's own.
type Database struct {
	DSN  string // the driver's data source name
	Drop func() error

	// Keyspace is true on Vitess, where vtgate creates no databases: the example has the tables of an empty keyspace.
	Keyspace bool
}

// Fresh makes a database of the caller's own, with a name that begins with prefix, on the server of dsn, which is a
// URL. On Vitess it takes the URL's keyspace, which must be empty, and Drop removes its tables.
func Fresh(ctx context.Context, dsn, prefix string) (*Database, error) {
	cfg, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	admin, err := sql.Open(Driver, cfg.FormatDSN())
	if err != nil {
		return nil, err
	}
	name := prefix + strings.ToLower(rand.Text()[:10])
	_, err = admin.ExecContext(ctx, "CREATE DATABASE "+name)
	keyspace := isUnsupported(err) && cfg.DBName != ""
	if keyspace {
		var tables []string
		if tables, err = tablesOf(ctx, admin); len(tables) > 0 {
			err = fmt.Errorf("-dsn: the keyspace %s has tables, such as %s; give an empty one", cfg.DBName, tables[0])
		}
	}
	if err != nil {
		return nil, errors.Join(err, admin.Close())
	}
	drop := func(ctx context.Context) error {
		_, err := admin.ExecContext(ctx, "DROP DATABASE "+name)
		return err
	}
	if keyspace {
		drop = func(ctx context.Context) error { return empty(ctx, admin) }
	} else {
		cfg.DBName = name
	}
	return &Database{DSN: cfg.FormatDSN(), Keyspace: keyspace, Drop: func() error {
		ctx, cancel := removal.Context()
		defer cancel()
		return errors.Join(drop(ctx), admin.Close())
	}}, nil
}

// isUnsupported reports whether the server has no such statement.
func isUnsupported(err error) bool {
	e := (*mysql.MySQLError)(nil)
	return errors.As(err, &e) && e.Number == 1235
}

// tablesOf returns the names of a database's tables.
func tablesOf(ctx context.Context, db *sql.DB) (names []string, err error) {
	rows, err := db.QueryContext(ctx, "SHOW TABLES")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// empty drops the tables of a database.
func empty(ctx context.Context, db *sql.DB) error {
	names, err := tablesOf(ctx, db)
	for _, name := range names {
		_, failed := db.ExecContext(ctx, "DROP TABLE "+name)
		err = errors.Join(err, failed)
	}
	return err
}

func parse(dsn string) (*mysql.Config, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, fmt.Errorf("-dsn: %w", err)
	}
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	return mysql.ParseDSN(cfg.FormatDSN()) // which adds the port where there is none
}

// URL returns the URL of a server that is named as the driver has it.
func URL(source string) (string, error) {
	cfg, err := mysql.ParseDSN(source)
	if err != nil {
		return "", err
	}
	u := url.URL{Scheme: strings.TrimSuffix(Scheme, "://"), User: url.UserPassword(cfg.User, cfg.Passwd), Host: cfg.Addr, Path: "/" + cfg.DBName}
	return u.String(), nil
}
