package tidb_test

import (
	"context"
	"errors"
	"net/url"
	osexec "os/exec"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The steps of the README's program, with an upsert in TiDB's SQL.
func TestReadmeProgram(t *testing.T) {
	db, err := sqlfence.Open("mysql", empty(t),
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
	harness.CloseAtEnd(t, db, err)
	ctx := t.Context()
	exec(t, db, `CREATE TABLE IF NOT EXISTS books
		(id integer PRIMARY KEY, price integer, fence_token bigint NOT NULL DEFAULT 0)`)
	leases, err := lease.New(db)
	if err != nil {
		t.Fatal(err)
	}
	if err := leases.Setup(ctx); err != nil {
		t.Fatal(err)
	}
	setPrice := func(ctx context.Context, price int) error {
		_, err := db.ExecContext(ctx, "INSERT INTO books (id, price) VALUES (1, ?) ON DUPLICATE KEY UPDATE price = VALUES(price)", price)
		return err
	}
	var first context.Context
	if err := errors.Join(leases.Do(ctx, "books", func(ctx context.Context) error {
		first = context.WithoutCancel(ctx)
		return setPrice(ctx, 20)
	}), leases.Do(ctx, "books", func(ctx context.Context) error { return setPrice(ctx, 30) })); err != nil {
		t.Fatal(err)
	}
	const message = `another holder has taken over "books" (its token is 2, this write's is 1)`
	if err := setPrice(first, 10); !errors.Is(err, sqlfence.ErrStale) || !strings.Contains(err.Error(), message) {
		t.Errorf("the first holder's write: %v", err)
	}
	var price int
	if err := db.QueryRow("SELECT price FROM books").Scan(&price); err != nil || price != 30 {
		t.Errorf("the price is %d, %v", price, err)
	}
}

// The program examples/books runs on TiDB as it is.
func TestBooksExample(t *testing.T) {
	c, err := mysql.ParseDSN(serverDSN(t))
	if err != nil {
		t.Fatal(err)
	}
	server := url.URL{Scheme: "mysql", User: url.UserPassword(c.User, c.Passwd), Host: c.Addr, Path: "/" + c.DBName}
	run := osexec.CommandContext(t.Context(), "go", "run", "./books", "-clients", "100", "-dsn", server.String())
	run.Dir = "../../../../examples"
	if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), "\nOK: with sqlfence no stale write landed") {
		t.Errorf("%v\n%s", err, out)
	}
}
