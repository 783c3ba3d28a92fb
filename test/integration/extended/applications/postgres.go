package main

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	_ "github.com/lib/pq"
)

// newDatabase makes an empty database on the server of SQLFENCE_POSTGRES_DSN.
func newDatabase(name string) (dsn string, drop func() error, err error) {
	server := os.Getenv("SQLFENCE_POSTGRES_DSN")
	u, err := url.Parse(server)
	if err != nil || server == "" {
		return "", nil, errors.Join(errors.New("SQLFENCE_POSTGRES_DSN is no URL; run this by scripts/with-postgres"), err)
	}
	db, err := sql.Open("postgres", server)
	if err != nil {
		return "", nil, err
	}
	name = fmt.Sprintf("%s_%d", name, time.Now().UnixNano())
	if _, err := db.Exec("CREATE DATABASE " + name); err != nil {
		return "", nil, err
	}
	u.Path = name
	return u.String(), func() error {
		_, err := db.Exec("DROP DATABASE " + name + " WITH (FORCE)")
		return errors.Join(err, db.Close())
	}, nil
}
