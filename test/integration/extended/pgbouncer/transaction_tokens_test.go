//go:build linux

package pgbouncer_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// Ways in which a client sets the token of a session or of a transaction.
const (
	setLocal   = "SELECT set_config('sqlfence.tokens', 'books:000000000000007', true)"
	setWithID  = "SELECT set_config('sqlfence.tokens', concat('books:000000000000007 ', txid_current()), true)"
	setSession = "SELECT set_config('sqlfence.tokens', 'books:000000000000007', false)"
)

var transactions = []struct {
	statements []string // before the write; nil: the write is outside a transaction
	proven     bool
}{
	{nil, false},
	{[]string{"BEGIN"}, false},
	{[]string{"BEGIN", "SELECT 1"}, false},
	{[]string{"BEGIN", setLocal}, true},
	{[]string{"BEGIN", setWithID}, true},
	{[]string{"BEGIN", "SAVEPOINT a", setLocal, "{write}", "RELEASE SAVEPOINT a"}, true},
	{[]string{"BEGIN", "SAVEPOINT a", setWithID, "{write}", "ROLLBACK TO SAVEPOINT a"}, false},
	{[]string{"BEGIN", "SAVEPOINT a", setLocal, "{write}", "ROLLBACK TO SAVEPOINT a"}, false},
	{[]string{"BEGIN", setLocal, "{write}", "ROLLBACK", "BEGIN"}, false},
	{[]string{"BEGIN", setLocal, "COMMIT", "BEGIN"}, false},
	{[]string{"BEGIN", setWithID, "COMMIT", "BEGIN"}, false},
	{[]string{setLocal}, false},
	{[]string{setSession, "BEGIN"}, false},
	{[]string{"SET sqlfence.tokens = 'books:000000000000007'", "BEGIN"}, false},
	{[]string{"BEGIN", setLocal, "SAVEPOINT a", "{write}", "RELEASE SAVEPOINT a"}, true},
	{[]string{setSession, "BEGIN", "SAVEPOINT a"}, false},
	{[]string{"BEGIN", setSession, "COMMIT", "BEGIN"}, false},
	{[]string{"BEGIN", setLocal, "SET sqlfence.tokens = 'books:000000000000007'", "COMMIT", "BEGIN"}, false},
	{[]string{"BEGIN", "SELECT 1/0", "ROLLBACK", "BEGIN"}, false},
	{[]string{"BEGIN", setLocal, "SELECT 1/0", "ROLLBACK", "BEGIN"}, false},
}

// Clients share server connections in transaction mode. A token that one client sets, for a transaction or for the
// session, must not be accepted in another transaction.
func TestPgbouncerTokensOfTransactions(t *testing.T) {
	harness.NeedPostgres(t)
	for _, p := range poolings() {
		if !p.shared {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			b := baseNamed(p.base)
			tokensOfTransactions(t, func(dsn string, clients int) *sql.DB {
				pooled := b.Raw(t, behindPgbouncer(t, dsn)+p.params)
				pooled.SetMaxOpenConns(clients)
				pooled.SetMaxIdleConns(clients)
				return pooled
			}, b)
		})
	}
}

// tokensOfTransactions lets several clients send random transactions through a pooler, and compares the rows with the
// writes that should have been accepted.
func tokensOfTransactions(t *testing.T, through func(dsn string, clients int) *sql.DB, b harness.Base) {
	t.Helper()
	seed := harness.Seed(t)
	dsn := b.DSN(t)
	table := sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Sealed(sqlfence.FromTransaction()))
	direct, db := b.Raw(t, dsn), b.Fenced(t, dsn, table)
	const clients = 8
	harness.MustExec(t, direct, "CREATE TABLE books (id integer PRIMARY KEY, price integer NOT NULL DEFAULT 0, fence_token bigint NOT NULL DEFAULT 0)")
	harness.MustExec(t, direct, fmt.Sprintf("INSERT INTO books (id) SELECT * FROM generate_series(0, %d)", clients-1))
	store, err := tokens.New(db)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 7}); err != nil {
		t.Fatal(err)
	}
	if err := schema.Seal(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	pooled := through(dsn, clients)
	rounds := harness.Rounds(t, 150)
	var landed [clients]int
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			landed[client] = sendTransactions(t, pooled, client, rounds, rand.New(rand.NewPCG(seed, uint64(client))))
		})
	}
	wg.Wait()
	for client, want := range landed {
		var price int
		if err := direct.QueryRow(fmt.Sprint("SELECT price FROM books WHERE id = ", client)).Scan(&price); err != nil || price != want {
			t.Errorf("seed %d: client %d has proven %d writes, and %d have landed (%v)", seed, client, want, price, err)
		}
	}
}

// sendTransactions sends random transactions, and returns the number of writes that were accepted and committed.
func sendTransactions(t *testing.T, db *sql.DB, client, rounds int, r *rand.Rand) (landed int) {
	var conn *sql.Conn
	exec := func(query string) error {
		_, err := conn.ExecContext(context.WithoutCancel(t.Context()), query)
		return err
	}
	write := fmt.Sprint("UPDATE books SET price = price + 1 WHERE id = ", client)
	for range rounds {
		kind := transactions[r.IntN(len(transactions))]
		kept := 0 // accepted writes between savepoints
		var err error
		if conn, err = db.Conn(t.Context()); err != nil {
			t.Error(err)
			return landed
		}
		for _, query := range kind.statements {
			if query == "{write}" {
				query = write
				if kind.proven {
					kept++
				}
			}
			if err := exec(query); err != nil && harness.SQLState(err) != "22012" {
				t.Errorf("client %d: %v: %s: %v", client, kind.statements, query, err)
			}
		}
		err = exec(write)
		if err == nil { // the seal checks a write after a savepoint at COMMIT
			err = exec("COMMIT")
		} else if err := exec("ROLLBACK"); err != nil {
			t.Errorf("client %d: %v: ROLLBACK: %v", client, kind.statements, err)
		}
		if (err == nil) != kind.proven || err != nil && harness.SQLState(err) != "FT001" {
			t.Errorf("client %d: %v: the write: %v", client, kind.statements, err)
		}
		if err == nil {
			landed += kept + 1
		}
		_ = conn.Close()
	}
	return landed
}
