package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

const mysqlScheme = "mysql://"

// newMySQL makes a database of its own on a server of MySQL or MariaDB. dsn is a URL, or in
// the form that the driver takes.
func newMySQL(ctx context.Context, dsn string) (*source, error) {
	cfg, err := parseMySQL(dsn)
	if err != nil {
		return nil, err
	}
	admin, err := sql.Open("mysql", cfg.FormatDSN())
	if err != nil {
		return nil, err
	}
	name := "sqlfence_books_" + strings.ToLower(rand.Text()[:10])
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return nil, errors.Join(err, admin.Close())
	}
	cfg.DBName = name
	return &source{
		driver: "mysql",
		dsn:    cfg.FormatDSN(),
		drop: func() error {
			// Interrupted or not, the database goes: hence a context of its own.
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_, err := admin.ExecContext(ctx, "DROP DATABASE "+name)
			return errors.Join(err, admin.Close())
		},
	}, nil
}

func parseMySQL(dsn string) (*mysql.Config, error) {
	if !strings.HasPrefix(dsn, mysqlScheme) {
		return mysql.ParseDSN(dsn)
	}
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
