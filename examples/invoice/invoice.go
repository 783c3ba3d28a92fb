package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/examples/internal/sqlite"
)

// openDB opens the database. Every write of an invoice increments the row version, and respects the lock of a user who
// is editing.
func openDB(dsn string) (*sql.DB, error) {
	return sqlfence.Open(sqlite.Driver, dsn, sqlfence.WithTable("invoice",
		sqlfence.Serial("serial"), sqlfence.EditLock("editedby", "editedsince", "editedexpiry")))
}

// schema is the application's; the last three columns are the lock's. The number of a deleted invoice isn't reused.
const schema = `CREATE TABLE IF NOT EXISTS invoice (
	id           integer PRIMARY KEY AUTOINCREMENT,
	customer     text    NOT NULL,
	total        integer NOT NULL,
	notes        text    NOT NULL,
	serial       integer NOT NULL DEFAULT 1,
	editedby     text,
	editedsince  integer,
	editedexpiry integer
);
INSERT INTO invoice (id, customer, total, notes) VALUES (1, 'Analytical Engines', 100, '') ON CONFLICT DO NOTHING;
INSERT INTO invoice (id, customer, total, notes) VALUES (2, 'Difference & Sons', 250, 'second reminder') ON CONFLICT DO NOTHING`

// An invoice is a row as it was read, or as a user wants it to be.
type invoice struct {
	ID       int64
	Serial   int64 // the version that was read
	Customer string
	Total    int64
	Notes    string
}

// columns are the columns of a page, for SELECT; dest returns their destinations.
const columns = "customer, total, notes"

func (i *invoice) dest() []any { return []any{&i.Customer, &i.Total, &i.Notes} }

// load reads an invoice without a lock.
func load(ctx context.Context, db *sql.DB, id int64) (invoice, error) {
	i := invoice{ID: id}
	err := db.QueryRowContext(ctx, "SELECT serial, "+columns+" FROM invoice WHERE id = ?", id).
		Scan(append([]any{&i.Serial}, i.dest()...)...)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%w: invoice %d", sqlfence.ErrGone, id)
	}
	return i, err
}

func loadAll(ctx context.Context, db *sql.DB) (all []invoice, err error) {
	rows, err := db.QueryContext(ctx, "SELECT id, "+columns+" FROM invoice ORDER BY id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var i invoice
		if err := rows.Scan(append([]any{&i.ID}, i.dest()...)...); err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, rows.Err()
}

// existed reports whether there is or was an invoice with this id: AUTOINCREMENT assigns ids in order, and
// sqlite_sequence has the last one.
func existed(ctx context.Context, db *sql.DB, id int64) (existed bool, err error) {
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_sequence WHERE name = 'invoice' AND ? BETWEEN 1 AND "+
		"seq", id).Scan(&existed)
	return existed, err
}

// update writes an invoice only if the row still has the version that was read.
func (i invoice) update(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(sqlfence.WithSerial(ctx, i.Serial), "UPDATE invoice SET customer = ?, total = ?, notes "+
		"= ? WHERE id = ?",
		i.Customer, i.Total, i.Notes, i.ID)
	return err
}
