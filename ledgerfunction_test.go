package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence/internal/fakedb"
	"github.com/sqlfence/sqlfence/internal/own"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A catalogue takes the place of a PostgreSQL whose ledger has the function, or not.
type catalogue struct {
	*fakedb.DB
	schema string // of the function; empty without one
	fails  error  // of the question
}

type codedError string

func (e codedError) Error() string    { return "no " + sqltext.LedgerFunction + " " + string(e) }
func (e codedError) SQLState() string { return string(e) }

// asked are what the statements sent were: the question, with and without the function.
func (c *catalogue) asked() (kinds string) {
	for _, call := range c.Sent() {
		switch {
		case call.Query == sqltext.FindLedgerFunction:
			kinds += "?"
		case call.Query == sqltext.CreateLedgerFunction:
			kinds += "i"
		case strings.Contains(call.Query, sqltext.LedgerFunction+"("):
			kinds += "f"
		case strings.Contains(call.Query, "books"):
			kinds += "s"
		}
	}
	return kinds
}

// openCatalogue opens it with a driver that is taken for a known one of PostgreSQL's.
func openCatalogue(t *testing.T, opts ...Option) (*sql.DB, *catalogue) {
	t.Helper()
	c := new(catalogue)
	c.DB = fakedb.New(func(_ context.Context, call fakedb.Call) (fakedb.Answer, error) {
		switch {
		case call.Query == sqltext.FindLedgerFunction && c.schema != "":
			return fakedb.Answer{Columns: []string{"nspname"}, Rows: [][]any{{c.schema}}}, c.fails
		case call.Query == sqltext.FindLedgerFunction:
			return fakedb.Answer{Columns: []string{"nspname"}}, c.fails
		case strings.Contains(call.Query, sqltext.LedgerFunction+"(") && c.schema == "":
			return fakedb.Answer{}, codedError("42883")
		}
		return fakedb.Answer{Affected: 1}, nil
	})
	const known = "github.com/sqlfence/sqlfence/internal/fakedb"
	profiles[known] = profile{database: postgres{}, noOptions: true, findLedgerFunction: sqltext.FindLedgerFunction}
	t.Cleanup(func() { delete(profiles, known) })
	db, err := OpenDB(c.DB, append([]Option{WithTable("books")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, c
}

func setBooks(t *testing.T, db *sql.DB) error {
	t.Helper()
	_, err := db.ExecContext(WithFence(t.Context(), Token{"books", 7}), "UPDATE books SET price = $1", 1)
	return err
}

// writeOften executes as many guarded statements as come before the one that asks.
func writeOften(t *testing.T, db *sql.DB, c *catalogue) {
	t.Helper()
	for range worthAsking - 1 {
		if err := setBooks(t, db); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.asked(); strings.Trim(got, "s") != "" {
		t.Errorf("sent %q", got)
	}
}

func TestLedgerFunctionIsAskedForWhenItPays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, c := openCatalogue(t)
		writeOften(t, db, c)
		want := func(kinds string) {
			t.Helper()
			if err := setBooks(t, db); err != nil {
				t.Error(err)
			}
			if got := c.asked(); got != kinds {
				t.Errorf("sent %q, want %q", got, kinds)
			}
		}
		want("?s")
		c.schema = "public"
		want("s") // not so soon again
		time.Sleep(askAgain)
		want("?f")
		want("f")
		c.schema = ""
		want("fs") // once
		want("s")
		time.Sleep(askAgain)
		c.fails = errors.New("a server that is starting")
		want("?s")
		time.Sleep(askAgain)
		c.schema, c.fails = "public", nil
		want("?f")
	})
}

func TestLedgerFunctionInATransaction(t *testing.T) {
	db, c := openCatalogue(t)
	c.schema = "public"
	writeOften(t, db, c)
	ctx := WithFence(t.Context(), Token{"books", 7})
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("UPDATE books SET price = $1", 1); err != nil {
		t.Error(err)
	}
	if err := tx.Rollback(); err != nil || c.asked() != "s" {
		t.Errorf("it asks in a transaction, or %v", err)
	}
	if err := setBooks(t, db); err != nil || c.asked() != "?f" {
		t.Errorf("it doesn't ask, or %v", err)
	}
	runs := 0
	err = Retry(ctx, db, RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		if runs++; runs == 1 {
			c.schema = ""
		}
		_, err := tx.ExecContext(ctx, "UPDATE books SET price = $1", 1)
		return err
	})
	if got := c.asked(); err != nil || got != "fs" {
		t.Errorf("%v, sent %q", err, got)
	}
}

func TestLedgerFunctionIsNotAskedFor(t *testing.T) {
	rowFence := func(o *options) { o.tables = nil; WithTable("books", RowFence("fence"))(o) }
	db, c := openCatalogue(t, rowFence)
	c.schema = "public"
	writeOften(t, db, c)
	if err := setBooks(t, db); err != nil || c.asked() != "s" {
		t.Errorf("without a ledger: %v", err)
	}
	delete(profiles, "github.com/sqlfence/sqlfence/internal/fakedb") // now nobody knows the driver
	other, err := OpenDB(c.DB, WithTable("books"), WithDialect(Postgres))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	writeOften(t, other, c)
	if err := setBooks(t, other); err != nil || c.asked() != "s" {
		t.Errorf("of an unknown driver: %v", err)
	}
}

// Whoever installs it through the same pool has it at once.
func TestLedgerFunctionIsInstalled(t *testing.T) {
	db, c := openCatalogue(t)
	if err := setBooks(t, db); err != nil {
		t.Error(err)
	}
	c.schema = "public"
	if _, err := db.ExecContext(own.Context(t.Context(), sqltext.CreateLedgerFunction), sqltext.CreateLedgerFunction); err != nil {
		t.Error(err)
	}
	if err := setBooks(t, db); err != nil {
		t.Error(err)
	}
	if got := c.asked(); got != "si?f" {
		t.Errorf("sent %q", got)
	}
}

// Other errors say nothing about the function.
func TestLedgerFunctionIsNotLost(t *testing.T) {
	f := new(ledgerFunction)
	if f.lost(codedError("42883")) {
		t.Error("lost before it was found")
	}
	s, err := newSettings([]Option{WithTable("books"), WithDialect(Postgres)}, new(int))
	if err != nil {
		t.Fatal(err)
	}
	f.rewriter.Store(s.rewriter)
	for _, err := range []error{nil, errors.New(sqltext.LedgerFunction), codedError("22P02"), codedError("40001")} {
		if f.lost(err) {
			t.Errorf("lost by %v", err)
		}
	}
	if !f.lost(codedError("42501")) || f.rewriter.Load() != nil {
		t.Error("not lost by a missing privilege")
	}
}
