package main

import (
	"context"
	"database/sql"

	"github.com/sqlfence/sqlfence/lease"
)

var (
	dsn    string
	db     *sql.DB
	leases *lease.Leases
)

func send(ctx context.Context) error { return nil }

func code(ctx context.Context) (err error) {
	// goes here
	return err
}
