package servers_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	gmssql "github.com/dolthub/go-mysql-server/sql"
	_ "github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/verify"
)

// start starts a go-mysql-server with a database called shop, and returns its DSN.
func start(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	provider := memory.NewDBProvider(memory.NewDatabase("shop"))
	s, err := server.NewServer(server.Config{Protocol: "tcp", Listener: listener}, sqle.NewDefault(provider), gmssql.NewContext, memory.NewSessionBuilder(provider), nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Start() }()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
	return fmt.Sprintf("root@tcp(%s)/shop", listener.Addr())
}

// setup creates the tables, and a row whose fence column and version are 9 and whose edit lock another user holds.
func setup(t *testing.T) (plain *sql.DB, dsn string) {
	t.Helper()
	dsn = start(t)
	plain, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plain.Close() })
	for _, query := range []string{
		"CREATE TABLE books (id bigint PRIMARY KEY, price bigint, fence bigint NOT NULL DEFAULT 0, version bigint NOT NULL DEFAULT 0, who varchar(64), since bigint, till bigint)",
		"CREATE TABLE fencing_tokens (name varbinary(512) NOT NULL PRIMARY KEY, token bigint NOT NULL)",
		"INSERT INTO books VALUES (1, 1, 9, 9, 'ada', 1, 9000000000000000)",
		"INSERT INTO fencing_tokens VALUES ('books', 9), ('books/1', 9)",
	} {
		if _, err := plain.Exec(query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	return plain, dsn
}

var rules = map[string][]sqlfence.Rule{
	"row fence":  {sqlfence.RowFence("fence")},
	"single use": {sqlfence.RowFence("fence"), sqlfence.SingleUse()},
	"ledger":     {sqlfence.Ledger()},
	"both":       {sqlfence.RowFence("fence"), sqlfence.Ledger()},
	"key":        {sqlfence.RowFence("fence"), sqlfence.Key("id")},
	"serial":     {sqlfence.Serial("version")},
	"required":   {sqlfence.Serial("version", sqlfence.Required())},
	"edit lock":  {sqlfence.EditLock("who", "since", "till")},
	"sealed":     {sqlfence.RowFence("fence"), sqlfence.Sealed()},
}

var writes = []string{
	"UPDATE books SET price = 2",
	"UPDATE books SET price = 2 WHERE id = 1",
	"DELETE FROM books",
	"DELETE FROM books WHERE id = 1",
}

// go-mysql-server reports that it is MySQL, but doesn't throw the errors that guards rely on: it would accept a stale
// write. So sqlfence must refuse every guarded statement on this server.
func TestGuardsAreRefusedWhereTheyWouldNotRaise(t *testing.T) {
	plain, dsn := setup(t)
	for name, rules := range rules {
		t.Run(name, func(t *testing.T) {
			db, err := sqlfence.Open("mysql", dsn, sqlfence.WithTable("books", rules...))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 3}, sqlfence.Token{Name: "books/1", Value: 3})
			ctx = sqlfence.WithEditor(sqlfence.WithSerial(ctx, 3), "grace")
			wantRefused := func(what string, err error) {
				t.Helper()
				var refused *sqlfence.UnguardableError
				if !errors.As(err, &refused) || !errors.Is(err, sqlfence.ErrUnguardable) || !strings.Contains(refused.Reason, `"8.0.`) {
					t.Errorf("%s: %v", what, err)
				}
			}
			for _, query := range writes {
				_, err := db.ExecContext(ctx, query)
				wantRefused(query, err)
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				_, err = tx.ExecContext(ctx, query)
				wantRefused("in a transaction, "+query, err)
				if err := tx.Rollback(); err != nil {
					t.Error(err)
				}
			}
			var price, mark, version int
			if err := plain.QueryRow("SELECT price, fence, version FROM books").Scan(&price, &mark, &version); err != nil || price != 1 || mark != 9 || version != 9 {
				t.Errorf("A STALE WRITE LANDED: price %d, mark %d, version %d, %v", price, mark, version, err)
			}
			verified, err := sqlfence.Open("mysql", dsn, sqlfence.WithTable("books", rules...), verify.OnConnect())
			if err != nil {
				t.Fatal(err)
			}
			defer verified.Close()
			if err := verified.PingContext(t.Context()); !errors.Is(err, sqlfence.ErrNotSetUp) || !strings.Contains(err.Error(), "wrong-server") {
				t.Errorf("verify.OnConnect opens it: %v", err)
			}
		})
	}
}
