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

// If a server rolls back a transaction after a deadlock and continues, no guarded write follows in the transaction, and
// the COMMIT fails if the transaction had a guarded write. Other tables are left to the application.
func TestRolledBackTransaction(t *testing.T) {
	deadlock := &mysqlError{1213, "Deadlock found when trying to get lock; try restarting transaction"}
	timeout := &mysqlError{1205, "Lock wait timeout exceeded; try restarting transaction"}
	const books, others = "UPDATE books SET price = 1", "UPDATE others SET price = 1"
	for name, tt := range map[string]struct {
		dialect    sqlfence.Dialect
		err        error
		before     string // empty for none
		victim     string
		option     sqlfence.Option
		bypass     bool
		refused    bool // a later guarded write is refused
		commitFail bool
	}{
		"a guarded write":           {err: deadlock, victim: books, refused: true, commitFail: true},
		"another write":             {err: deadlock, victim: others, refused: true},
		"another behind a guarded":  {err: deadlock, before: books, victim: others, refused: true, commitFail: true},
		"a changed record":          {err: &mysqlError{1020, "Record has changed"}, victim: books, refused: true, commitFail: true},
		"a lock wait":               {err: timeout, victim: books},
		"another error":             {err: &mysqlError{1062, "Duplicate entry"}, victim: books},
		"another database":          {dialect: sqlfence.SQLite, err: deadlock, victim: books},
		"observed":                  {err: deadlock, victim: others, option: sqlfence.WithMode(sqlfence.Observe)},
		"bypassed":                  {err: deadlock, victim: others, bypass: true},
		"bypassed behind a guarded": {err: deadlock, before: books, victim: others, bypass: true, commitFail: true},
	} {
		t.Run(name, func(t *testing.T) {
			fail := true
			base := fakedb.New(func(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
				if fail && c.Kind != fakedb.Begin && strings.Contains(c.Query, strings.Fields(tt.victim)[1]) && strings.HasPrefix(c.Query, "UPDATE") {
					return fakedb.Response{}, tt.err
				}
				return fakedb.Response{Affected: 1}, nil
			})
			if tt.dialect == 0 {
				tt.dialect = sqlfence.MySQL
			}
			opts := []sqlfence.Option{sqlfence.WithDialect(tt.dialect), sqlfence.WithTable("books", sqlfence.RowFence("fence_token"))}
			if tt.option != nil {
				opts = append(opts, tt.option)
			}
			db, err := sqlfence.OpenDB(base, opts...)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			db.SetMaxOpenConns(1)
			ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: 5})
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if tt.before != "" {
				if _, err := tx.ExecContext(ctx, tt.before); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := tx.ExecContext(ctx, tt.victim); !errors.Is(err, tt.err) {
				t.Fatal(err)
			}
			fail = false
			if _, err := tx.Exec(others); err != nil {
				t.Errorf("a write on another table: %v", err)
			}
			write := ctx
			if tt.bypass {
				write = sqlfence.Bypass(ctx, "test")
			}
			wantRolledBack(t, tt.refused, tt.err, func() error { _, err := tx.ExecContext(write, books); return err })
			wantRolledBack(t, tt.commitFail, tt.err, tx.Commit)
			wantRolledBack(t, false, nil, func() error { _, err := db.ExecContext(ctx, books); return err })
		})
	}
}

func wantRolledBack(t *testing.T, want bool, cause error, do func() error) {
	t.Helper()
	err := do()
	if !want && err != nil {
		t.Errorf("%v, want nil", err)
	}
	var temporary interface{ Temporary() bool }
	if want && (!errors.Is(err, cause) || !errors.As(err, &temporary) || !temporary.Temporary()) {
		t.Errorf("%v, want a temporary error that wraps %v", err, cause)
	}
}

// Retry runs a function again if the function ignored a deadlock.
func TestRetryOfRolledBackTransaction(t *testing.T) {
	for _, number := range []uint16{1213, 1020, 1205, 1047} {
		runs := 0
		base := fakedb.New(func(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
			if runs == 1 && strings.HasPrefix(c.Query, "UPDATE") {
				return fakedb.Response{}, &mysqlError{number, "not now"}
			}
			return fakedb.Response{Affected: 1}, nil
		})
		db, err := sqlfence.OpenDB(base, sqlfence.WithDialect(sqlfence.MySQL), sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: 5})
		err = sqlfence.Retry(ctx, db, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
			runs++
			_, err := tx.ExecContext(ctx, "UPDATE books SET price = 1")
			if number == 1213 {
				return nil // ignored
			}
			return err
		})
		if err != nil || runs != 2 {
			t.Errorf("%d: %d runs, %v; want 2", number, runs, err)
		}
	}
}
