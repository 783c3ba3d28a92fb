package fakedb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// wantSent compares what was sent with "connection: text -- arguments".
func wantSent(t *testing.T, fake *fakedb.DB, want ...string) {
	t.Helper()
	var got []string
	for _, c := range fake.Sent() {
		got = append(got, fmt.Sprintf("%d: %v", c.Conn, c))
	}
	if !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}

func open(t *testing.T, handle fakedb.Handler) (*fakedb.DB, *sql.DB) {
	fake := fakedb.New(handle)
	db := sql.OpenDB(fake)
	t.Cleanup(func() { db.Close() })
	return fake, db
}

func TestScriptAnswersInOrder(t *testing.T) {
	fake, db := open(t, fakedb.Script(
		fakedb.Response{Affected: 3},
		fakedb.Response{Rows: [][]any{{int64(7), "ada"}, {int64(8), nil}}},
	))
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelSerializable, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	result, err := tx.ExecContext(t.Context(), "UPDATE t", 1, "x")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := result.RowsAffected(); n != 3 || err != nil {
		t.Errorf("affected %d, %v", n, err)
	}
	stmt, err := tx.PrepareContext(t.Context(), "SELECT id, name")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := stmt.QueryContext(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for rows.Next() {
		var id int64
		var name sql.NullString
		if err := rows.Scan(&id, &name); err != nil {
			t.Error(err)
		}
		got = append(got, fmt.Sprintf("%d %s", id, name.String))
	}
	if want := []string{"7 ada", "8 "}; !slices.Equal(got, want) || rows.Err() != nil {
		t.Errorf("rows %q, %v; want %q", got, rows.Err(), want)
	}
	if err := stmt.Close(); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	if _, err := db.ExecContext(t.Context(), "DELETE"); err == nil || !strings.Contains(err.Error(), "the script is over") {
		t.Errorf("a statement too many: %v", err)
	}
	wantSent(t, fake, "1: BEGIN Serializable, read-only", `1: UPDATE t -- 1, "x"`, "1: SELECT id, name -- <nil>", "1: COMMIT", "1: DELETE")
	wantSent(t, fake)
}

func TestHandlerMayFailAnyCall(t *testing.T) {
	broken := errors.New("broken")
	var failing fakedb.Kind
	fake, db := open(t, func(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
		if c.Kind == failing {
			return fakedb.Response{}, broken
		}
		return fakedb.Response{}, nil
	})
	run := func() error {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(t.Context(), "UPDATE"); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		rows, err := tx.QueryContext(t.Context(), "SELECT")
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
		if err := rows.Close(); err != nil {
			return err
		}
		return tx.Commit()
	}
	for kind, want := range map[fakedb.Kind][]string{
		0:               {"1: BEGIN", "1: UPDATE", "1: SELECT", "1: COMMIT"},
		fakedb.Begin:    {"1: BEGIN"},
		fakedb.Exec:     {"1: BEGIN", "1: UPDATE", "1: ROLLBACK"},
		fakedb.Query:    {"1: BEGIN", "1: UPDATE", "1: SELECT", "1: ROLLBACK"},
		fakedb.Commit:   {"1: BEGIN", "1: UPDATE", "1: SELECT", "1: COMMIT"},
		fakedb.Rollback: {"1: BEGIN", "1: UPDATE", "1: SELECT", "1: COMMIT"},
	} {
		failing = kind
		if err := run(); errors.Is(err, broken) != (kind != 0 && kind != fakedb.Rollback) {
			t.Errorf("kind %d fails: %v", kind, err)
		}
		wantSent(t, fake, want...)
	}
}

func TestRowsMayFailAfterTheLast(t *testing.T) {
	broken := errors.New("broken")
	_, db := open(t, fakedb.Script(fakedb.Response{Columns: []string{"id"}, Rows: [][]any{{int64(7)}}, RowsErr: broken}))
	rows, err := db.QueryContext(t.Context(), "SELECT")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() || rows.Next() || !errors.Is(rows.Err(), broken) {
		t.Errorf("rows end with %v, want one row and then %v", rows.Err(), broken)
	}
}

// A transaction can still be rolled back, and the database closed.
func TestPanicOfTheHandlerIsAnError(t *testing.T) {
	fake, db := open(t, func(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
		if c.Kind == fakedb.Exec {
			panic("broken")
		}
		return fakedb.Response{}, nil
	})
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "UPDATE"); err == nil || !strings.Contains(err.Error(), "panicked at UPDATE: broken") {
		t.Errorf("err = %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	wantSent(t, fake, "1: BEGIN", "1: UPDATE", "1: ROLLBACK")
}
