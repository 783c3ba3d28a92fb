package tidb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// ledgerWrites are statements on books, which has the rule Ledger.
var ledgerWrites = []struct {
	query string
	args  []any
}{
	{query: "UPDATE books SET price = 666 WHERE id = 1"},
	{query: "UPDATE books SET price = ? WHERE price + 0 < ?", args: []any{666, 3}},
	{query: "DELETE FROM books WHERE id = 1"},
	{query: "INSERT INTO books (id, price) VALUES (7, 666)"},
	{query: "INSERT INTO books (id, price) VALUES (?, 0), (8, 666) ON DUPLICATE KEY UPDATE price = 666", args: []any{1}},
	{query: "INSERT INTO books (id, price) SELECT id + 10, 666 FROM pens WHERE id < ?", args: []any{3}},
	{query: "UPDATE books b JOIN pens p ON p.id = b.id SET b.price = 666 WHERE b.id = 1"},
}

// resetLedger restores the rows, and issues a token.
func resetLedger(t *testing.T, plain *sql.DB, store *tokens.Store) context.Context {
	t.Helper()
	exec(t, plain, "DELETE FROM books")
	reset(t, plain)
	token, err := store.Issue(t.Context(), "books")
	if err != nil {
		t.Fatal(err)
	}
	return sqlfence.WithFence(t.Context(), token)
}

// priceOfFirst returns the price of the first row.
func priceOfFirst(t *testing.T, plain *sql.DB) (n int) {
	t.Helper()
	if err := plain.QueryRow("SELECT price FROM books WHERE id = 1").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A transaction with a write under Ledger never commits once another session has got a newer token, in any kind of
// session.
func TestLedgerInEveryOrder(t *testing.T) {
	dsn, plain := setup(t)
	exec(t, plain, "CREATE TABLE shelf (n bigint)")
	store := harness.NewStore(t, open(t, dsn))
	orders, waits := 0, 0
	for i, s := range slices.Concat(sessions, others, uncommitted) {
		db := s.fence(t, dsn, sqlfence.Ledger())
		if db == nil {
			t.Logf("%s: not on this server", s.name)
			continue
		}
		for _, w := range ledgerWrites {
			if i >= len(sessions) && w.query != ledgerWrites[0].query {
				continue
			}
			for at := range len(holderSteps) + 1 {
				holder := resetLedger(t, plain, store)
				landed, waited := late(t, plain, db, at, attempt{
					func(_ context.Context, tx *sql.Tx) error {
						_, err := tx.ExecContext(holder, w.query, w.args...)
						return err
					},
					func(ctx context.Context) error { _, err := store.Issue(ctx, "books"); return err }})
				if orders++; waited {
					waits++
				}
				if landed {
					t.Errorf("%s: A TRANSACTION WITH AN OLDER TOKEN COMMITTED: %s; token issued before step %d", s.name, w.query, at)
				}
			}
		}
	}
	if waits == 0 {
		t.Error("no token waited for a transaction")
	}
	t.Logf("%d orders, %d with a wait", orders, waits)
}

// A transaction that presents the claim of another table's row never commits once another session has claimed the row.
func TestClaimOfInEveryOrder(t *testing.T) {
	dsn, plain := setup(t)
	exec(t, plain, "CREATE TABLE shelf (n bigint)")
	for i, s := range slices.Concat(sessions, others, uncommitted) {
		db, err := sqlfence.Open("mysql", s.with(t, dsn), sqlfence.WithTable("pens", sqlfence.Claim("price"), sqlfence.Key("id")),
			sqlfence.WithTable("books", sqlfence.ClaimOf("pens")))
		harness.CloseAtEnd(t, db, err)
		if number(db.Ping()) == unknownVariable {
			continue
		}
		for at := range len(holderSteps) + 1 {
			exec(t, plain, "REPLACE INTO pens VALUES (1, 7)")
			holder := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "pens/1", Value: 7})
			if landed, _ := late(t, plain, db, at, attempt{
				func(_ context.Context, tx *sql.Tx) error {
					_, err := tx.ExecContext(holder, "UPDATE books SET price = price + ? WHERE id > 0", 1)
					return err
				},
				func(ctx context.Context) error {
					return sqlfence.Retry(ctx, plain, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
						_, err := tx.ExecContext(ctx, "UPDATE pens SET price = price + 1 WHERE id = 1")
						return err
					})
				}}); landed {
				t.Errorf("%s: A TRANSACTION WITH AN OLDER CLAIM COMMITTED: claimed before step %d", s.name, at)
			}
		}
		if i >= len(sessions)+len(others) {
			continue
		}
		exec(t, plain, "REPLACE INTO pens VALUES (1, 7)")
		holder := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "pens/1", Value: 7})
		exec(t, withContext{db, holder}, "UPDATE books SET price = 7 WHERE id > 0")
		exec(t, plain, "UPDATE pens SET price = price + 1 WHERE id = 1")
		if _, err := db.ExecContext(holder, "UPDATE books SET price = ? WHERE id = 1", 666); !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("%s: %v, want ErrStale", s.name, err)
		}
	}
}

// A guarded statement outside of a transaction commits, and leaves no transaction open, whether it succeeds or is
// refused. In a transaction that statements begin or end unseen, and without autocommit, it commits with the
// transaction only.
func TestLedgerOutsideOfATransaction(t *testing.T) {
	dsn, plain := setup(t)
	store := harness.NewStore(t, open(t, dsn))
	price := func() int { return priceOfFirst(t, plain) }
	for _, s := range slices.Concat(sessions, others) {
		db := s.fence(t, dsn, sqlfence.Ledger())
		if db == nil {
			continue
		}
		for _, begins := range []string{"", "BEGIN", "BEGIN OPTIMISTIC", "START TRANSACTION", "SET autocommit = 0"} {
			ctx := resetLedger(t, plain, store)
			conn, err := db.Conn(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if begins != "" {
				exec(t, conn, begins)
			}
			exec(t, withContext{conn, ctx}, "UPDATE books SET price = ? WHERE id = 1", 7)
			if want := map[bool]int{true: 7, false: 1}[begins == ""]; price() != want {
				t.Errorf("%s, %q: the price is %d before COMMIT, want %d", s.name, begins, price(), want)
			}
			exec(t, conn, "COMMIT")
			if price() != 7 {
				t.Errorf("%s, %q: the price is %d after COMMIT", s.name, begins, price())
			}
			if begins != "" { // the connection isn't fit for the pool
				exec(t, conn, "SET autocommit = 1")
			}
			stale := ctx
			resetLedger(t, plain, store)
			for range 2 {
				if _, err := conn.ExecContext(stale, "UPDATE books SET price = 666 WHERE id = 1"); !errors.Is(err, sqlfence.ErrStale) {
					t.Errorf("%s, %q: %v, want ErrStale", s.name, begins, err)
				}
				var open int64
				if err := conn.QueryRowContext(ctx, "SELECT @@tidb_current_ts").Scan(&open); err != nil || open != 0 {
					t.Errorf("%s, %q: a transaction is open after a refusal: %d, %v", s.name, begins, open, err)
				}
			}
			_ = conn.Close()
		}
	}
}

// sql_select_limit doesn't change what is compared, whatever the token's name is.
func TestStaleWriteIsRefusedUnderSelectLimitZero(t *testing.T) {
	dsn, plain := setup(t)
	exec(t, plain, "INSERT INTO books (id, price) VALUES (1, 1)")
	for _, name := range []string{"books", "books LIMIT 1", "books) LIMIT 1", "books FOR UPDATE LIMIT 1"} {
		db := fence(t, dsn, sqlfence.Ledger(), sqlfence.Resource(name))
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		exec(t, plain, "REPLACE INTO fencing_tokens VALUES (?, 5)", name)
		ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: name, Value: 5})
		exec(t, withContext{conn, ctx}, "UPDATE books SET price = 2")
		exec(t, conn, "SET sql_select_limit = 0")
		exec(t, withContext{conn, ctx}, "UPDATE books SET price = 3")
		exec(t, plain, "UPDATE fencing_tokens SET token = 6")
		_, err = conn.ExecContext(ctx, "UPDATE books SET price = 666")
		if price := priceOfFirst(t, plain); !errors.Is(err, sqlfence.ErrStale) || price != 3 {
			t.Errorf("%q: %v, want ErrStale; the price is %d", name, err, price)
		}
		exec(t, conn, "SET sql_select_limit = 1000")
		_ = conn.Close()
	}
}

// Writers use old and new tokens while tokens are issued. Between the issue of a token and that of the next one, rows
// change to that token's prices only.
func TestLedgerStorm(t *testing.T) {
	dsn, plain := setup(t)
	store := harness.NewStore(t, open(t, dsn))
	resetLedger(t, plain, store)
	var dbs []*sql.DB
	for _, s := range slices.Concat(sessions, others) {
		if db := s.fence(t, dsn, sqlfence.Ledger()); db != nil {
			dbs = append(dbs, db)
		}
	}
	const perToken = 1_000_000 // a price is its token's value times perToken, plus a number
	var newest, stale, landed, refused, conflicts, next atomic.Int64
	newest.Store(1)
	var writers sync.WaitGroup
	over := make(chan struct{})
	for seed := range 8 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(seed)))
			for stale.Load() < attempts(t) && !t.Failed() {
				value := max(newest.Load()-random.Int64N(3), 1)
				old := value < newest.Load()
				query := stormy[random.IntN(len(stormy)-1)]
				changed, err := writeOnce(holding(value), dbs[random.IntN(len(dbs))], query,
					value*perToken+next.Add(1)%perToken, random.IntN(3) == 0, random.IntN(2) == 0)
				switch {
				case err == nil && changed > 0 && old:
					t.Errorf("%s: A STALE WRITE LANDED", query)
				case err == nil:
					landed.Add(1)
				case errors.Is(err, sqlfence.ErrStale):
					refused.Add(1)
				case gaveUp(err), err != nil && strings.Contains(err.Error(), "pessimistic lock retry limit reached"):
					conflicts.Add(1)
				default:
					t.Errorf("%s: %v", query, err)
				}
				if old {
					stale.Add(1)
				}
			}
		})
	}
	go func() { writers.Wait(); close(over) }()
	prices := func() (p [3]int64) {
		t.Helper()
		if err := plain.QueryRow("SELECT SUM(CASE id WHEN 1 THEN price END), SUM(CASE id WHEN 2 THEN price END), "+
			"SUM(CASE id WHEN 3 THEN price END) FROM books").Scan(&p[0], &p[1], &p[2]); err != nil {
			t.Error(err)
		}
		return p
	}
	issued := 0
	for running := true; running; issued++ {
		token, err := store.Issue(t.Context(), "books")
		if err != nil {
			t.Error(err)
			break
		}
		before := prices()
		newest.Store(token.Value)
		harness.Eventually(t, "some writes under a token", func() bool {
			select {
			case <-over:
				running = false
				return true
			default:
				return landed.Load()+refused.Load() > int64(issued)*20
			}
		})
		for row, p := range prices() {
			if p != before[row] && p/perToken != token.Value {
				t.Errorf("row %d has changed from %d to %d under token %d: A STALE WRITE LANDED", row+1, before[row], p, token.Value)
			}
		}
	}
	<-over
	t.Log(fmt.Sprint(stale.Load(), " stale attempts; ", landed.Load(), " landed; ", refused.Load(), " refused; ",
		conflicts.Load(), " conflicts; ", issued, " tokens"))
}
