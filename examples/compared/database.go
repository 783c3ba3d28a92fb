package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// A database is an empty database that the example has created.
type database struct {
	name       string
	cost       string // the head of the last column
	approaches []approach
	missing    []string // which it hasn't got
	admin      *sql.DB  // as the owner of the tables
	token      int64    // the last that a process took

	bare       func() (*sql.DB, error)
	fenced     func(opts ...sqlfence.Option) (*sql.DB, error)
	reset      []string // drops the objects that an approach has created
	counted    func() (statements, roundTrips int)
	costs      func(statements, roundTrips int) string
	endSession func(ctx context.Context, p *process) error
	drop       func() error
}

// create recreates the table, with the additions of an approach.
func (d *database) create(ctx context.Context, a approach) error {
	d.token = 0
	for _, query := range append(append(d.reset,
		"CREATE TABLE books (id bigint PRIMARY KEY, price bigint NOT NULL)",
		"INSERT INTO books (id, price) VALUES (1, 10), (2, 10)"), a.create...) {
		if _, err := d.admin.ExecContext(ctx, query); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	if !a.ledger {
		return nil
	}
	store, err := tokens.New(d.admin)
	if err != nil {
		return err
	}
	return store.Setup(ctx)
}

// rows returns the prices of the books by their ids.
func (d *database) rows(ctx context.Context) (prices map[int]int64, err error) {
	rows, err := d.admin.QueryContext(ctx, "SELECT id, price FROM books")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	prices = map[int]int64{}
	for rows.Next() {
		var id int
		var price int64
		if err := rows.Scan(&id, &price); err != nil {
			return nil, err
		}
		prices[id] = price
	}
	return prices, rows.Err()
}
