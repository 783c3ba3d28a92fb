package core_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/core"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// A catalogue stands for a PostgreSQL server. Its ledger may have the function.
type catalogue struct {
	*fakedb.DB
	schema string // of the function; empty without one
	fails  error  // of the query for facts
	kinds  string // kinds of the sent statements
}

type codedError string

func (e codedError) Error() string {
	return "function shop." + sqltext.LedgerFunction + "(text, bigint) does not exist: " + string(e)
}
func (e codedError) SQLState() string { return string(e) }

// asked returns the kinds of the sent statements: the query for facts, and writes with and without the function.
func (c *catalogue) asked() string {
	kinds := c.kinds
	c.kinds = ""
	return kinds
}

func (c *catalogue) note(query string) {
	switch {
	case strings.Contains(query, pg.FindLedgerFunction):
		c.kinds += "?"
	case strings.Contains(query, sqltext.LedgerFunction+"("):
		c.kinds += "f"
	case strings.Contains(query, "UPDATE books"):
		c.kinds += "s"
	}
}

// facts returns the response to the query for facts.
func (c *catalogue) facts(query string) (string, error) {
	return fmt.Sprintf(`{"version": %q, "function": %q}`, fakedb.Version, c.schema), c.fails
}

// openCatalogue opens a catalogue with a driver that looks like a known PostgreSQL driver.
func openCatalogue(t *testing.T, opts ...sqlfence.Option) (*sql.DB, *catalogue) {
	t.Helper()
	c := new(catalogue)
	c.DB = fakedb.New(func(_ context.Context, call fakedb.Call) (fakedb.Response, error) {
		c.note(call.Query)
		switch {
		case strings.Contains(call.Query, pg.FindLedgerFunction):
			facts, err := c.facts(call.Query)
			return fakedb.Response{Rows: [][]any{{facts}}}, err
		case call.Query == pg.Text.Capabilities().FindLedgerSchema:
			return fakedb.Response{Rows: [][]any{{"public"}}}, nil
		case strings.Contains(call.Query, sqltext.LedgerFunction+"(") && c.schema == "":
			return fakedb.Response{}, codedError("42883")
		}
		return fakedb.Response{Affected: 1}, nil
	})
	c.Capabilities = func(query string) (string, error) { c.note(query); return c.facts(query) }
	db, err := sqlfence.OpenDB(c.DB, append([]sqlfence.Option{sqlfence.WithTable("books"), sqlfence.WithDialect(sqlfence.Postgres)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, c
}

func setBooks(t *testing.T, db *sql.DB) error {
	t.Helper()
	_, err := db.ExecContext(sqlfence.WithFence(t.Context(), token("books", 7)), "UPDATE books SET price = $1", 1)
	return err
}

// wantMissing expects the refusal of a write because the function is missing, after the statements in sent.
func (c *catalogue) wantMissing(t *testing.T, err error, sent string) {
	t.Helper()
	var missing *sqlfence.SetupError
	if got := c.asked(); !errors.As(err, &missing) || !errors.Is(err, sqlfence.ErrNotSetUp) || got != sent {
		t.Fatalf("%v, sent %q, want %q", err, got, sent)
	}
	if missing.Missing != "function "+sqltext.LedgerFunction+" of table fencing_tokens" || missing.SQL != pg.CreateLedgerFunction || missing.Remedy == "" {
		t.Errorf("%+v", missing)
	}
}

// Without the function nothing is written. The function is searched until it is found, and after a guard didn't find
// it.
func TestLedgerFunctionIsRequired(t *testing.T) {
	db, c := openCatalogue(t)
	want := func(kinds string) {
		t.Helper()
		if err := setBooks(t, db); err != nil {
			t.Error(err)
		}
		if got := c.asked(); got != kinds {
			t.Errorf("sent %q, want %q", got, kinds)
		}
	}
	c.wantMissing(t, setBooks(t, db), "?")
	c.wantMissing(t, setBooks(t, db), "?")
	c.schema = "public"
	want("?f")
	want("f")
	c.schema = ""
	err := setBooks(t, db)
	c.wantMissing(t, err, "f")
	if temporary := (interface{ Temporary() bool })(nil); !errors.As(err, &temporary) || !temporary.Temporary() {
		t.Errorf("it may have moved: %v", err)
	}
	c.fails = errors.New("a server that is starting")
	if err := setBooks(t, db); !errors.Is(err, c.fails) || c.asked() != "?" {
		t.Errorf("without an answer: %v", err)
	}
	c.fails = nil
	c.wantMissing(t, setBooks(t, db), "?")
	c.schema = "shop"
	want("?f")
}

// In two minutes a pool sends each write once, and the connection's first query.
func TestAWriteIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, c := openCatalogue(t, sqlfence.WithTable("pens", sqlfence.RowFence("fence"), sqlfence.Ledger(), sqlfence.Sealed()))
		c.schema = "public"
		const writes = 1000
		for range writes {
			_, err := db.ExecContext(sqlfence.WithFence(t.Context(), token("pens", 7)), "UPDATE pens SET price = $1", 1)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute / writes)
		}
		if sent := len(c.Sent()) + strings.Count(c.asked(), "?"); sent != writes+1 {
			t.Errorf("%d statements for %d writes", sent, writes)
		}
	})
}

// A new connection sends the query only if the pool doesn't know the function.
func TestLedgerFunctionIsAskedForByThePool(t *testing.T) {
	db, c := openCatalogue(t)
	c.schema = "public"
	ctx := sqlfence.WithFence(t.Context(), token("books", 7))
	for range 2 {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for range 2 {
			if _, err := conn.ExecContext(ctx, "UPDATE books SET price = $1", 1); err != nil {
				t.Error(err)
			}
		}
	}
	if got := c.asked(); got != "?ffff" {
		t.Errorf("sent %q", got)
	}
}

// The query for facts is sent before a transaction that may write.
func TestLedgerFunctionInATransaction(t *testing.T) {
	db, c := openCatalogue(t)
	c.schema = "public"
	ctx := sqlfence.WithFence(t.Context(), token("books", 7))
	for _, test := range []struct {
		opts *sql.TxOptions
		want string
	}{{&sql.TxOptions{ReadOnly: true}, ""}, {nil, "?f"}, {nil, "f"}} {
		tx, err := db.BeginTx(ctx, test.opts)
		if err != nil {
			t.Fatal(err)
		}
		if test.want != "" {
			if _, err := tx.Exec("UPDATE books SET price = $1", 1); err != nil {
				t.Error(err)
			}
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		if got := c.asked(); got != test.want {
			t.Errorf("sent %q, want %q", got, test.want)
		}
	}
	runs := 0
	err := sqlfence.Retry(ctx, db, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		if runs++; runs == 1 {
			c.schema = ""
		}
		_, err := tx.ExecContext(ctx, "UPDATE books SET price = $1", 1)
		c.schema = "shop"
		return err
	})
	if got := c.asked(); err != nil || got != "f?f" {
		t.Errorf("%v, sent %q", err, got)
	}
}

func TestLedgerFunctionIsNotAskedFor(t *testing.T) {
	rowFence := func(o *core.Options) { o.Tables = nil; sqlfence.WithTable("books", sqlfence.RowFence("fence"))(o) }
	db, c := openCatalogue(t, rowFence)
	if err := setBooks(t, db); err != nil || c.asked() != "s" {
		t.Errorf("without a ledger: %v", err)
	}
	db, c = openCatalogue(t, sqlfence.WithTable("pens", sqlfence.RowFence("fence")))
	for _, want := range []string{"", ""} {
		_, err := db.ExecContext(sqlfence.WithFence(t.Context(), token("pens", 7)), "UPDATE pens SET price = $1", 1)
		if got := strings.TrimPrefix(c.asked(), "?"); err != nil || got != want {
			t.Errorf("beside a table with a ledger: %v, sent %q", err, got)
		}
	}
}

// A statement is prepared with the function's schema, which is queried first. After the function has moved, each
// connection prepares the statement again.
func TestLedgerFunctionOfAPreparedStatement(t *testing.T) {
	db, c := openCatalogue(t)
	ctx := sqlfence.WithFence(t.Context(), token("books", 7))
	_, err := db.PrepareContext(ctx, "UPDATE books SET price = $1")
	c.wantMissing(t, err, "?")
	c.schema = "public"
	var stmts []*sql.Stmt
	for range 3 {
		conn, err := db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		stmt, err := conn.PrepareContext(ctx, "UPDATE books SET price = $1")
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		stmts = append(stmts, stmt)
	}
	c.asked()
	c.schema = ""
	_, err = stmts[0].ExecContext(ctx, 1)
	c.wantMissing(t, err, "f")
	c.schema = "shop"
	for i, stmt := range stmts {
		if _, err := stmt.ExecContext(ctx, 1); err != nil {
			t.Errorf("connection %d: %v", i, err)
		}
	}
	sent := c.Sent()
	for _, call := range sent[len(sent)-3:] {
		if !strings.Contains(call.Query, `"shop".`+sqltext.LedgerFunction+"(") {
			t.Errorf("sent %s", call.Query)
		}
	}
}
