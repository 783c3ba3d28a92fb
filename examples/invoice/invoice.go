package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/examples/internal/sqlite"
)

// openDB opens the database. Every write of an invoice counts its version, and
// none passes over a person who is editing it.
func openDB(dsn string) (*sql.DB, error) {
	return sqlfence.Open(sqlite.Driver, dsn, sqlfence.WithTable("invoice",
		sqlfence.Serial("serial"), sqlfence.EditLock("editedby", "editedsince", "editedexpiry")))
}

// schema is the application's; the last three columns are the lock's.
const schema = `CREATE TABLE IF NOT EXISTS invoice (
	id           integer PRIMARY KEY,
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

// columns are what a page shows, for SELECT; dest takes them.
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

// update writes an invoice over the version that it was read as, and over no
// other.
func (i invoice) update(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(sqlfence.WithSerial(ctx, i.Serial), "UPDATE invoice SET customer = ?, total = ?, notes = ? WHERE id = ?",
		i.Customer, i.Total, i.Notes, i.ID)
	return err
}

// fromForm reads what a user has sent.
func fromForm(r *http.Request, id int64) (invoice, error) {
	serial, err := strconv.ParseInt(r.PostFormValue("serial"), 10, 64)
	total, err2 := strconv.ParseInt(strings.TrimSpace(r.PostFormValue("total")), 10, 64)
	if err := errors.Join(err, err2); err != nil {
		return invoice{}, err
	}
	return invoice{
		ID: id, Serial: serial, Total: total,
		Customer: strings.TrimSpace(r.PostFormValue("customer")),
		// Browsers send the ends of lines as CR LF.
		Notes: strings.TrimSpace(strings.ReplaceAll(r.PostFormValue("notes"), "\r\n", "\n")),
	}, nil
}

// A difference is a field that two invoices don't agree on.
type difference struct{ Field, Yours, Theirs string }

func differences(yours, theirs invoice) (all []difference) {
	for _, d := range []difference{
		{"customer", yours.Customer, theirs.Customer},
		{"total", fmt.Sprint(yours.Total), fmt.Sprint(theirs.Total)},
		{"notes", yours.Notes, theirs.Notes},
	} {
		if d.Yours != d.Theirs {
			all = append(all, d)
		}
	}
	return all
}
