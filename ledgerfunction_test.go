package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence/internal/core"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/fakedb"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// A catalogue takes the place of a PostgreSQL whose ledger has the function, or not.
type catalogue struct {
	*fakedb.DB
	schema string // of the function; empty without one
	fails  error  // of the question
	kinds  string // of what was sent
}

type codedError string

func (e codedError) Error() string {
	return "function shop." + sqltext.LedgerFunction + "(text, bigint) does not exist: " + string(e)
}
func (e codedError) SQLState() string { return string(e) }

// asked are what the statements sent were: the question, with and without the function.
func (c *catalogue) asked() string {
	kinds := c.kinds
	c.kinds = ""
	return kinds
}

func (c *catalogue) note(query string) {
	switch {
	case strings.Contains(query, pg.FindLedgerFunction):
		c.kinds += "?"
	case query == pg.CreateLedgerFunction:
		c.kinds += "i"
	case strings.Contains(query, sqltext.LedgerFunction+"("):
		c.kinds += "f"
	case strings.Contains(query, "UPDATE books"):
		c.kinds += "s"
	}
}

// facts answers the question.
func (c *catalogue) facts(query string) (string, error) {
	return fmt.Sprintf(`{"version": %q, "function": %q}`, fakedb.Version, c.schema), c.fails
}

// openCatalogue opens it with a driver that is taken for a known one of PostgreSQL's.
func openCatalogue(t *testing.T, opts ...Option) (*sql.DB, *catalogue) {
	t.Helper()
	c := new(catalogue)
	c.DB = fakedb.New(func(_ context.Context, call fakedb.Call) (fakedb.Answer, error) {
		c.note(call.Query)
		switch {
		case strings.Contains(call.Query, pg.FindLedgerFunction):
			facts, err := c.facts(call.Query)
			return fakedb.Answer{Rows: [][]any{{facts}}}, err
		case strings.Contains(call.Query, sqltext.LedgerFunction+"(") && c.schema == "":
			return fakedb.Answer{}, codedError("42883")
		}
		return fakedb.Answer{Affected: 1}, nil
	})
	c.Facts = func(query string) (string, error) { c.note(query); return c.facts(query) }
	db, err := OpenDB(c.DB, append([]Option{WithTable("books"), WithDialect(Postgres)}, opts...)...)
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

// install has the function in the database, and known.
func install(t *testing.T, db *sql.DB, c *catalogue) {
	t.Helper()
	c.schema = "public"
	if _, err := db.ExecContext(trusted.Context(t.Context(), pg.CreateLedgerFunction), pg.CreateLedgerFunction); err != nil {
		t.Fatal(err)
	}
	if err := setBooks(t, db); err != nil {
		t.Fatal(err)
	}
	if got := c.asked(); got != "i?f" {
		t.Errorf("sent %q", got)
	}
}

func TestLedgerFunctionIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		want("?s")
		c.schema = "public"
		want("s") // not so soon again
		time.Sleep(session.LookAgain)
		want("?f")
		want("f")
		time.Sleep(session.LookAgain)
		want("?f")
		c.schema = ""
		want("fs") // once
		want("s")
		time.Sleep(session.LookAgain)
		c.schema, c.fails = "public", errors.New("a server that is starting")
		if err := setBooks(t, db); !errors.Is(err, c.fails) || c.asked() != "?" {
			t.Errorf("without an answer: %v", err)
		}
		c.fails = nil
		want("?f")
	})
}

// A new connection asks only if the pool doesn't know the function. All go by what one of them has found, or misses.
func TestLedgerFunctionIsAskedForByThePool(t *testing.T) {
	db, c := openCatalogue(t)
	var conns []*sql.Conn
	for range 2 {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	ctx := WithFence(t.Context(), Token{"books", 7})
	for i, schema := range []string{"", "public", "public", ""} {
		c.schema = schema
		if _, err := conns[i%2].ExecContext(ctx, "UPDATE books SET price = $1", 1); err != nil {
			t.Error(err)
		}
	}
	if got := c.asked(); got != "?s?fffs" {
		t.Errorf("sent %q", got)
	}
}

// The question is asked before a transaction that may write.
func TestLedgerFunctionInATransaction(t *testing.T) {
	db, c := openCatalogue(t)
	c.schema = "public"
	ctx := WithFence(t.Context(), Token{"books", 7})
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
	err := Retry(ctx, db, RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
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
	rowFence := func(o *core.Options) { o.Tables = nil; WithTable("books", RowFence("fence"))(o) }
	db, c := openCatalogue(t, rowFence)
	c.schema = "public"
	if err := setBooks(t, db); err != nil || c.asked() != "s" {
		t.Errorf("without a ledger: %v", err)
	}
}

// Whoever installs it through the same pool has it at once.
func TestLedgerFunctionIsInstalled(t *testing.T) {
	db, c := openCatalogue(t)
	if err := setBooks(t, db); err != nil {
		t.Error(err)
	}
	c.schema = "public"
	if _, err := db.ExecContext(trusted.Context(t.Context(), pg.CreateLedgerFunction), pg.CreateLedgerFunction); err != nil {
		t.Error(err)
	}
	if err := setBooks(t, db); err != nil {
		t.Error(err)
	}
	if got := c.asked(); got != "?si?f" {
		t.Errorf("sent %q", got)
	}
}

// Each connection that had prepared a call of the function does without, once one has missed it.
func TestLedgerFunctionIsLostToEachConnection(t *testing.T) {
	db, c := openCatalogue(t)
	install(t, db, c)
	ctx := WithFence(t.Context(), Token{"books", 7})
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
	c.schema = ""
	for range 2 {
		for i, stmt := range stmts {
			if _, err := stmt.ExecContext(ctx, 1); err != nil {
				t.Errorf("connection %d: %v", i, err)
			}
		}
	}
	if got := c.asked(); got != "fs?s?ssss" {
		t.Errorf("sent %q", got)
	}
}

// A prepared statement that misses the function when it is executed with a serial isn't
// compared with one from then on.
func TestLedgerFunctionIsLostUnderASerial(t *testing.T) {
	db, c := openCatalogue(t, WithTable("pens", Ledger(), Serial("version")))
	install(t, db, c)
	ctx := WithFence(t.Context(), Token{"pens", 7})
	stmt, err := db.PrepareContext(ctx, "UPDATE pens SET price = $1 WHERE id = $2")
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	var texts []string
	exec := func(ctx context.Context) {
		t.Helper()
		if _, err := stmt.ExecContext(ctx, 1, 2); err != nil {
			t.Error(err)
		}
		sent := c.Sent()
		texts = append(texts, sent[len(sent)-1].Query)
	}
	c.schema = ""
	exec(WithSerial(ctx, 5))
	exec(ctx)
	exec(WithSerial(ctx, 5))
	if texts[1] == texts[0] || texts[2] != texts[0] {
		t.Errorf("with a serial %s\nwithout one %s\nwith one %s", texts[0], texts[1], texts[2])
	}
}
