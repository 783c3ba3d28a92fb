package main

import (
	"context"
	"database/sql"
)

var (
	driver, dsn string
	db          *sql.DB
	id, claim   int64
)

func code(ctx context.Context) (err error) {
	// goes here
	return err
}
