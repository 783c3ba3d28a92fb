package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/rowlock"
)

// For each failing call, the error names the operation and the table, and wraps the database's error. Earlier effects
// of the operation are rolled back.
func TestFailuresLeaveNothing(t *testing.T) {
	broken := errors.New("broken")
	eachOperation(t, slices.Concat(ofTable, ofManager), func(t *testing.T, d *desk, op operation) {
		table, m := d.managed(t)
		before := d.state()
		for failing := 0; ; failing++ {
			n := 0
			d.fails = func(c fakedb.Call) error {
				if n++; n == failing+1 {
					return broken
				}
				return nil
			}
			err := op.run(t.Context(), table, m)
			sent := d.Sent()
			if n <= failing {
				if err != nil || failing == 0 {
					t.Errorf("%d calls, none of which failed: %v", n, err)
				}
				return
			}
			said := slices.ContainsFunc(op.does, func(do string) bool {
				return err != nil && strings.HasPrefix(err.Error(), "rowlock: "+do+": ")
			})
			if !errors.Is(err, broken) || !said {
				t.Errorf("%v fails: err = %v", sent[failing], err)
			}
			if after := d.state(); after != before || d.owner != 0 {
				t.Errorf("%v failed, and left\n%s instead of\n%s", sent[failing], after, before)
			}
			last := sent[len(sent)-1].Kind
			began := slices.ContainsFunc(sent, func(c fakedb.Call) bool { return c.Kind == fakedb.Begin }) && sent[failing].Kind != fakedb.Begin
			if began && sent[failing].Kind != fakedb.Commit && last != fakedb.Rollback {
				t.Errorf("%v failed, but there was no rollback after it: %q", sent[failing], texts(sent))
			}
		}
	})
}

// In the caller's transaction each statement is sent in it. The caller ends the transaction, whatever fails.
func TestInTakesPart(t *testing.T) {
	broken := errors.New("broken")
	eachOperation(t, ofTable, func(t *testing.T, d *desk, op operation) {
		table, m := d.managed(t)
		for failing := -1; ; failing++ {
			tx, err := d.db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			d.Sent()
			n := 0
			d.fails = func(fakedb.Call) error {
				if n++; n == failing+1 {
					return broken
				}
				return nil
			}
			err = op.run(t.Context(), table.In(tx), m)
			d.fails = nil
			sent := d.Sent()
			for _, c := range sent {
				if c.Kind != fakedb.Exec && c.Kind != fakedb.Query {
					t.Errorf("it ended or began a transaction: %v", c)
				}
			}
			fails := failing >= 0 && failing < len(sent)
			if errors.Is(err, broken) != fails || len(sent) == 0 || !fails && err != nil {
				t.Errorf("call %d of %d fails: %v", failing, len(sent), err)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			d.Sent()
			if failing >= 0 && !fails {
				return
			}
		}
	})
}

// A method repeats after a serialization failure. A save doesn't, because its work may not bear this, and in the
// caller's transaction no method does, because the failure has ended it.
func TestSerializationFailureIsRepeated(t *testing.T) {
	repeats := func(t *testing.T, d *desk, op operation, table *rowlock.Table, m *rowlock.Manager) (err error) {
		failed := false
		d.fails = func(c fakedb.Call) error {
			if failed || c.Kind != fakedb.Exec && c.Kind != fakedb.Query {
				return nil
			}
			failed = true
			return sqlState("40001")
		}
		defer func() { d.fails = nil }()
		return op.run(t.Context(), table, m)
	}
	eachOperation(t, slices.Concat(ofTable, ofManager), func(t *testing.T, d *desk, op operation) {
		table, m := d.managed(t)
		once := strings.HasPrefix(op.name, "Save") || op.name == "Setup"
		err := repeats(t, d, op, table, m)
		if once != errors.Is(err, sqlState("40001")) || !once && err != nil {
			t.Errorf("managed: %v", err)
		}
		if slices.ContainsFunc(ofManager, func(of operation) bool { return of.name == op.name }) {
			return
		}
		d.adaHolds()
		err = repeats(t, d, op, d.table(t), nil)
		if once != errors.Is(err, sqlState("40001")) || !once && err != nil {
			t.Errorf("alone: %v", err)
		}
		tx, err := d.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if err := repeats(t, d, op, table.In(tx), m); !errors.Is(err, sqlState("40001")) {
			t.Errorf("in a transaction: %v", err)
		}
	})
}

// A sqlState is PostgreSQL's error of this code, as drivers report it.
type sqlState string

func (s sqlState) Error() string    { return "SQLSTATE " + string(s) }
func (s sqlState) SQLState() string { return string(s) }

// After the end of a context its error is returned, and nothing is sent.
func TestEndedContext(t *testing.T) {
	eachOperation(t, slices.Concat(ofTable, ofManager), func(t *testing.T, d *desk, op operation) {
		table, m := d.managed(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := op.run(ctx, table, m); !errors.Is(err, context.Canceled) || len(d.Sent()) != 0 {
			t.Errorf("err = %v", err)
		}
	})
}

// A database may answer with the row and fail after it.
func TestErrorAfterTheRow(t *testing.T) {
	for _, dialect := range []sqlfence.Dialect{sqlfence.Postgres, sqlfence.SQLite} {
		broken := errors.New("broken")
		granted := []any{int64(1), "ada", int64(0), int64(1), true, true}
		db := sql.OpenDB(fakedb.New(fakedb.Script(fakedb.Response{Rows: [][]any{granted}, RowsErr: broken})))
		defer db.Close()
		table, err := rowlock.New(db, "invoice", rowlock.WithDialect(dialect))
		if err != nil {
			t.Fatal(err)
		}
		if lock, err := table.Request(t.Context(), ada); !errors.Is(err, broken) || lock != (rowlock.Lock{}) {
			t.Errorf("%v: %+v, %v", dialect, lock, err)
		}
	}
}

// If the stored version isn't an integer, the error says this, and no edit's version equals it.
func TestVersionIsNoInteger(t *testing.T) {
	d := newDesk(sqlfence.SQLite)
	defer d.db.Close()
	d.set(func(r *row) { r.serial = "1" })
	before := d.state()
	for name, err := range map[string]error{
		"Request":  second(d.table(t).Request(t.Context(), ada)),
		"SaveKeep": second(d.table(t).SaveKeep(t.Context(), ada, raise)),
	} {
		if err == nil || !strings.Contains(err.Error(), "holds 1 (string), want an integer") || d.state() != before {
			t.Errorf("%s = %v; %s", name, err, d.state())
		}
	}
}

// If a row takes no lock although no condition prevents it, the method returns an error, and doesn't loop for ever.
func TestRowTakesNoLock(t *testing.T) {
	refused := make([]fakedb.Response, 1000)
	for i := range refused {
		refused[i].Rows = [][]any{{int64(1), nil, nil, nil, false, false}}
	}
	db := sql.OpenDB(fakedb.New(fakedb.Script(refused...)))
	defer db.Close()
	table, err := rowlock.New(db, "invoice", rowlock.WithDialect(sqlfence.Postgres))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Request(t.Context(), ada); err == nil || !strings.Contains(err.Error(), "look for a trigger") {
		t.Errorf("err = %v", err)
	}
}
