package history

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// Own is sqlfence's own ledger.
const Own = "fencing_tokens"

// Install creates the table of the events and the triggers that fill it. A ledger is a table with the columns name and
// token; with sqlfence's ledger the triggers record leases as well. db must bypass the fence, and the fence must have
// created its tables.
func Install(ctx context.Context, db *sql.DB, database string, tables []Table, ledger string) error {
	d, ok := dialects[database]
	if !ok {
		return fmt.Errorf("no triggers for the database %q", database)
	}
	statements := slices.Clone(d.tables)
	for _, t := range tables {
		for _, what := range []What{Insert, Update, Delete} {
			statements = append(statements, d.row(t, what)...)
		}
	}
	if ledger != "" {
		statements = append(statements, d.ledger(ledger)...)
	}
	if ledger == Own {
		statements = append(statements, d.leases...)
	}
	for _, query := range statements {
		if _, err := db.ExecContext(ctx, query); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	return nil
}

// A dialect is how a database records. Values of an event are in the order of insert.
type dialect struct {
	tables []string
	row    func(t Table, what What) []string
	ledger func(table string) []string
	leases []string
}

const into = "INSERT INTO history (what, name, row_id, op, was, mark, began, ended) "

const insert = into + "VALUES "

const ledgerInsert = insert + "('ledger', NEW.name, 0, 0, 0, NEW.token, 0, 0)"

// ledgerChange records a new token; an UPDATE that leaves the token as it is issues none.
const ledgerChange = into + "SELECT 'ledger', NEW.name, 0, 0, OLD.token, NEW.token, 0, 0 WHERE NEW.token <> OLD.token"

// rowChange records the change of a row. Where users lock rows, that is recorded before, and is no change by itself; now is
// the time, by the clock of the locks.
func rowChange(t Table, what What, deleting, now string, micros func(string) string) string {
	values := rowValues(t, what, deleting)
	if !t.Edited || what != Update {
		return insert + "(" + values + ")"
	}
	const changed = " WHERE NEW.value <> OLD.value"
	edit := strings.Join([]string{
		"'edit'", quote(t.Name), "NEW.id", "CASE WHEN NEW.value = OLD.value THEN 0 ELSE NEW.value END", "COALESCE(OLD.editedby, 0)",
		"COALESCE(NEW.editedby, 0)", now, "COALESCE(" + micros("OLD.editedexpiry") + ", 0)",
	}, ", ")
	return insert + "(" + edit + "); " + into + "SELECT " + values + changed
}

// rowValues are the values of the event of a row; op is who deletes it.
func rowValues(t Table, what What, deleting string) string {
	row, op, was, mark := "NEW.id", "COALESCE(NEW.value, 0)", "0", "0"
	if what == Delete {
		row, op = "OLD.id", deleting
	}
	if t.Mark != "" && what != Insert {
		was = "COALESCE(OLD." + t.Mark + ", 0)"
	}
	if t.Mark != "" && what != Delete {
		mark = "COALESCE(NEW." + t.Mark + ", 0)"
	}
	return strings.Join([]string{quote(string(what)), quote(t.Name), row, op, was, mark, "0", "0"}, ", ")
}

func quote(s string) string { return "'" + s + "'" }

// CommitOf returns the statement with which a transaction records that it is about to commit the writes of a request.
// The guards must hold until this record.
func CommitOf(op int64) string {
	return fmt.Sprintf("%s('commit', '', 0, %d, 0, 0, 0, 0)", insert, op)
}

// Read returns the events after a number.
func Read(ctx context.Context, db *sql.DB, after int64) ([]Event, error) {
	query := fmt.Sprintf("SELECT seq, what, name, row_id, op, was, mark, began, ended FROM history WHERE seq > %d", after)
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var events []Event
	for rows.Next() {
		var e Event
		if err := rows.Scan(&e.Seq, &e.What, &e.Name, &e.Row, &e.Op, &e.Was, &e.Mark, &e.Began, &e.Ended); err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	slices.SortFunc(events, func(a, b Event) int { return int(a.Seq - b.Seq) })
	return events, rows.Err()
}
