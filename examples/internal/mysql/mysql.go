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

// Fresh makes a database of the caller's own, with a name that begins with prefix, on the server of
// dsn, which is a URL. source is the driver's data source name of the database; drop removes the database.
func Fresh(ctx context.Context, dsn, prefix string) (source string, drop func() error, err error) {
	cfg, err := parse(dsn)
	if err != nil {
		return "", nil, err
	}
	admin, err := sql.Open(Driver, cfg.FormatDSN())
	if err != nil {
		return "", nil, err
	}
	cfg.DBName = prefix + strings.ToLower(rand.Text()[:10])
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE "+cfg.DBName); err != nil {
		return "", nil, errors.Join(err, admin.Close())
	}
	return cfg.FormatDSN(), func() error {
		ctx, cancel := removal.Context()
		defer cancel()
		_, err := admin.ExecContext(ctx, "DROP DATABASE "+cfg.DBName)
		return errors.Join(err, admin.Close())
	}, nil
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
