package core_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// A listError is a driver's error of a type that can't be compared: == between two
// of them panics.
type listError struct{ faults []string }

func (e listError) Error() string { return strings.Join(e.faults, "; ") }

// A driver's error of any type is returned unchanged, and a guard's marker is read from it.
func TestErrorsThatCannotBeCompared(t *testing.T) {
	unrelated := listError{[]string{"disk full"}}
	stale := listError{[]string{"near line 1", fakedb.ErrStaleAt9.Error()}}
	for _, mode := range []sqlfence.Mode{sqlfence.Enforce, sqlfence.Observe} {
		for _, raised := range []listError{unrelated, stale} {
			for name, way := range uncomparableWays {
				t.Run([]string{"enforce", "observe"}[mode]+"/"+name+"/"+raised.faults[0], func(t *testing.T) {
					base := new(fakedb.Recorder)
					db := open(t, base, sqlfence.WithTable("books", fenced),
						sqlfence.WithTable("pens", sqlfence.Serial("version")), sqlfence.WithMode(mode))
					fail := func(late bool) {
						if late {
							base.FailsNext = raised
						} else {
							base.Fails = failGuarded(raised, mode)
						}
					}
					err := way(sqlfence.WithFence(t.Context(), token("books", 7)), db, fail)
					checkUncomparable(t, err, name == "serial", len(raised.faults) > 1, mode)
				})
			}
		}
	}
}

const uncomparableWrite = "UPDATE books SET price = ?"

// uncomparableWays run a statement that fails at once or, if late, at its first row.
var uncomparableWays = map[string]func(ctx context.Context, db *sql.DB, fail func(late bool)) error{
	"exec": func(ctx context.Context, db *sql.DB, fail func(bool)) error {
		fail(false)
		_, err := db.ExecContext(ctx, uncomparableWrite, 1)
		return err
	},
	"query": func(ctx context.Context, db *sql.DB, fail func(bool)) error {
		fail(false)
		return db.QueryRowContext(ctx, uncomparableWrite+" RETURNING id", 1).Scan(new(int))
	},
	"first row": func(ctx context.Context, db *sql.DB, fail func(bool)) error {
		fail(true)
		return db.QueryRowContext(ctx, uncomparableWrite+" RETURNING id", 1).Scan(new(int))
	},
	"serial": func(ctx context.Context, db *sql.DB, fail func(bool)) error {
		fail(true)
		return db.QueryRowContext(sqlfence.WithSerial(ctx, 3), "UPDATE pens SET price = ? RETURNING id", 1).Scan(new(int))
	},
	"prepared": func(ctx context.Context, db *sql.DB, fail func(bool)) error {
		s, err := db.PrepareContext(ctx, uncomparableWrite)
		if err != nil {
			return err
		}
		defer s.Close()
		fail(false)
		_, err = s.ExecContext(ctx, 1)
		return err
	},
	"prepared query": func(ctx context.Context, db *sql.DB, fail func(bool)) error {
		s, err := db.PrepareContext(ctx, uncomparableWrite+" RETURNING id")
		if err != nil {
			return err
		}
		defer s.Close()
		fail(true)
		return s.QueryRowContext(ctx, 1).Scan(new(int))
	},
	"transaction": func(ctx context.Context, db *sql.DB, fail func(bool)) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		fail(false)
		_, err = tx.ExecContext(ctx, uncomparableWrite, 1)
		return err
	},
}

// failGuarded fails the guarded statements, and in Enforce mode all statements.
func failGuarded(err error, mode sqlfence.Mode) func(string) error {
	return func(query string) error {
		if mode == sqlfence.Observe && !strings.Contains(query, "sqlfence:") {
			return nil
		}
		return err
	}
}

func checkUncomparable(t *testing.T, err error, serial, stale bool, mode sqlfence.Mode) {
	t.Helper()
	var found listError
	switch {
	case mode == sqlfence.Observe && err == nil: // the statement was sent without its guard
	case !errors.As(err, &found):
		t.Errorf("errors.As doesn't find the driver's error in %v", err)
	case stale && !serial && mode == sqlfence.Enforce && !errors.Is(err, sqlfence.ErrStale):
		t.Errorf("error = %v, want ErrStale", err)
	case !stale && errors.Is(err, sqlfence.ErrStale):
		t.Errorf("error = %v", err)
	}
}

// Errors of transactions are returned unchanged.
func TestTransactionErrorsThatCannotBeCompared(t *testing.T) {
	failure := listError{[]string{"connection lost"}}
	base := &fakedb.Recorder{Fails: func(query string) error {
		if strings.HasPrefix(query, "COMMIT") || strings.HasPrefix(query, "ROLLBACK") {
			return failure
		}
		return nil
	}}
	db := open(t, base, sqlfence.WithTable("books", fenced))
	for name, end := range map[string]func(*sql.Tx) error{"commit": (*sql.Tx).Commit, "rollback": (*sql.Tx).Rollback} {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		var found listError
		if err := end(tx); !errors.As(err, &found) {
			t.Errorf("%s: %v", name, err)
		}
	}
	base.Fails = func(string) error { return failure }
	var found listError
	if _, err := db.Begin(); !errors.As(err, &found) {
		t.Errorf("begin: %v", err)
	}
}
