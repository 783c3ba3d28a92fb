package core_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// kindsOf shortens guarded statements to the kind of their guard.
func kindsOf(sent []string) (kinds []string) {
	for _, query := range sent {
		switch {
		case !strings.HasPrefix(query, "UPDATE"):
			kinds = append(kinds, query)
		case strings.Contains(query, "sqlfence:nonce:stale"):
			kinds = append(kinds, "guarded")
		default:
			kinds = append(kinds, "plain")
		}
	}
	return kinds
}

// In Observe mode a guard's error must not end the application's transaction. On PostgreSQL, where any error would, a
// savepoint precedes the statement.
func TestObserveSetsSavepoints(t *testing.T) {
	const (
		update   = "UPDATE books SET price = $1"
		set      = "SAVEPOINT sqlfence"
		released = "RELEASE SAVEPOINT sqlfence"
		undone   = "ROLLBACK TO SAVEPOINT sqlfence"
	)
	stale := pgError{"22P02", `invalid input syntax for type bigint: "sqlfence:nonce:stale:0:9"`}
	broken := pgError{"42703", `column "fence" does not exist`}
	failing := func(err error, kinds ...string) func(string) error {
		return func(query string) error {
			if slices.Contains(kinds, kindsOf([]string{query})[0]) {
				return err
			}
			return nil
		}
	}
	for _, tt := range []struct {
		name  string
		fails func(string) error
		begin string // a statement that begins the transaction; empty for BeginTx
		want  []string
		err   error
	}{
		{"fresh", nil, "", []string{set, "guarded", released}, nil},
		{"stale", failing(stale, "guarded"), "", []string{set, "guarded", undone, "plain"}, nil},
		{"broken", failing(broken, "guarded"), "", []string{set, "guarded", undone, "plain"}, nil},
		{"a deadlock", failing(pgError{"40P01", "deadlock"}, "guarded"), "", []string{set, "guarded"}, pgError{"40P01", "deadlock"}},
		{"begun by a statement", nil, "BEGIN", []string{set, "guarded", released}, nil},
		{"ended by a statement", nil, "COMMIT", []string{"guarded"}, nil},
		{"no transaction any more", failing(pgError{"25P01", "no transaction"}, set), "", []string{set, "guarded"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := new(fakedb.Recorder)
			db := openPostgres(t, base, sqlfence.WithTable("books", fenced), sqlfence.WithMode(sqlfence.Observe))
			c, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.ExecContext(with(t.Context(), 7), update, 30); err != nil { // the connection's first query
				t.Fatal(err)
			}
			begin := tt.begin
			if begin == "" {
				begin = "START TRANSACTION"
			}
			if _, err := c.ExecContext(t.Context(), begin); err != nil {
				t.Fatal(err)
			}
			base.Sent, base.Fails = nil, tt.fails
			_, err = c.ExecContext(with(t.Context(), 7), update, 30)
			if !errors.Is(err, tt.err) {
				t.Errorf("error = %v, want %v", err, tt.err)
			}
			if got := kindsOf(base.Sent); !slices.Equal(got, tt.want) {
				t.Errorf("sent %q, want %q", got, tt.want)
			}
		})
	}
}

// In a transaction of database/sql, which has a known end, a savepoint precedes the statement.
func TestObserveFollowsTransactions(t *testing.T) {
	base := new(fakedb.Recorder)
	db := openPostgres(t, base, sqlfence.WithTable("books", fenced), sqlfence.WithMode(sqlfence.Observe))
	db.SetMaxOpenConns(1)
	ctx := with(t.Context(), 7)
	run := func(exec func(context.Context) error, want ...string) {
		t.Helper()
		base.Sent = nil
		if err := exec(ctx); err != nil {
			t.Fatal(err)
		}
		if got := kindsOf(base.Sent); !slices.Equal(got, want) {
			t.Errorf("sent %q, want %q", got, want)
		}
	}
	update := func(ctx context.Context) error {
		_, err := db.ExecContext(ctx, "UPDATE books SET price = $1", 30)
		return err
	}
	run(update, "guarded")
	for _, commit := range []bool{true, false} {
		run(func(ctx context.Context) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			if _, err = tx.ExecContext(ctx, "UPDATE books SET price = $1", 30); err != nil {
				return err
			}
			if commit {
				return tx.Commit()
			}
			return tx.Rollback()
		}, "BEGIN Default", "SAVEPOINT sqlfence", "guarded", "RELEASE SAVEPOINT sqlfence", map[bool]string{true: "COMMIT", false: "ROLLBACK"}[commit])
		run(update, "guarded")
	}
}

// The savepoint of a query stays, because the rows are open when the query returns. If the server knows no transaction,
// no more savepoints are set. A transaction that a prepared statement begins gets savepoints.
func TestObserveSavepointsByStatement(t *testing.T) {
	base := new(fakedb.Recorder)
	db := openPostgres(t, base, sqlfence.WithTable("books", fenced), sqlfence.WithMode(sqlfence.Observe))
	ctx := with(t.Context(), 7)
	c, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	begin, err := c.PrepareContext(ctx, "BEGIN")
	if err != nil {
		t.Fatal(err)
	}
	defer begin.Close()
	exec := func() error { _, err := c.ExecContext(ctx, "UPDATE books SET price = $1", 30); return err }
	for _, step := range []struct {
		name string
		run  func() error
		want []string
	}{
		{"outside", exec, []string{"guarded"}},
		{"begin", func() error { _, err := begin.ExecContext(ctx); return err }, []string{"BEGIN"}},
		{"query", func() error {
			return c.QueryRowContext(ctx, "UPDATE books SET price = $1 RETURNING id", 30).Scan(new(int))
		}, []string{"SAVEPOINT sqlfence", "guarded"}},
		{"exec", exec, []string{"SAVEPOINT sqlfence", "guarded", "RELEASE SAVEPOINT sqlfence"}},
		{"no savepoint", func() error {
			base.Fails = func(query string) error {
				if query == "SAVEPOINT sqlfence" {
					return pgError{"25P01", "SAVEPOINT can only be used in transaction blocks"}
				}
				return nil
			}
			return exec()
		}, []string{"SAVEPOINT sqlfence", "guarded"}},
		{"outside again", exec, []string{"guarded"}},
	} {
		base.Sent = nil
		if err := step.run(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if got := kindsOf(base.Sent); !slices.Equal(got, step.want) {
			t.Errorf("%s: sent %q, want %q", step.name, got, step.want)
		}
	}
}
