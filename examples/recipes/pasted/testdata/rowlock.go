package main

import (
	"context"
	"database/sql"
)

var db *sql.DB

func code(ctx context.Context) (err error) {
	// goes here
	return err
}
