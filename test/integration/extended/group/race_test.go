package group_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// collided reports whether err is a conflict with another node's write, after which no part of this write is applied.
func collided(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && slices.Contains([]uint16{1213, 1020, 3101, 1180}, e.Number) && !errors.Is(err, sqlfence.ErrUnknownOutcome)
}

// write writes to all books, in one statement or in a transaction.
func write(ctx context.Context, db *sql.DB, inTx bool, price int64) error {
	const text = "UPDATE books SET price = ?"
	if !inTx {
		_, err := db.ExecContext(ctx, text, price)
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, text, price); err != nil {
		return err
	}
	return tx.Commit()
}

// Two nodes write at once, one of them under an older token. In either order, the stale write must not overwrite the
// newer one.
func TestRowFenceHolds(t *testing.T) {
	for _, inTx := range []bool{false, true} {
		c := start(t)
		older, newer := c.fence(t, 0, sqlfence.RowFence("fence_token")), c.fence(t, 1, sqlfence.RowFence("fence_token"))
		landed := map[string]int{}
		for i := range rounds(t) {
			token := int64(i) + 10
			done := make(chan error, 1)
			pause := func() { time.Sleep(rand.N(3 * time.Millisecond)) } // so that either write may be first
			go func() {
				pause()
				done <- write(holding(token), older, inTx, -1)
			}()
			pause()
			err := write(holding(token+1), newer, inTx, token)
			for collided(err) {
				landed["the newer again"]++
				err = write(holding(token+1), newer, inTx, token)
			}
			if err != nil {
				t.Fatalf("the newer write: %v", err)
			}
			switch err := <-done; {
			case err == nil:
				landed["the older one first"]++
			case errors.Is(err, sqlfence.ErrStale):
				landed["refused"]++
			case collided(err):
				landed["collided"]++
			default:
				t.Fatalf("the older write: %v", err)
			}
			for node := range c.plain {
				for id := 1; id <= 3; id++ {
					if got := c.price(t, node, id); got != token {
						t.Fatalf("round %d, node %d: row %d has %d, want %d: THE STALE WRITE LANDED", i, node+1, id, got, token)
					}
				}
			}
		}
		t.Logf("in a transaction: %v: %v", inTx, landed)
	}
}

// If two nodes write to one version of a row at once, exactly one write succeeds.
func TestSerialHolds(t *testing.T) {
	c := start(t)
	dbs := [2]*sql.DB{c.fence(t, 0, sqlfence.Serial("serial")), c.fence(t, 1, sqlfence.Serial("serial"))}
	for i := range rounds(t) {
		ctx := sqlfence.WithSerial(context.Background(), int64(i)+1)
		errs := make(chan error, 2)
		for n, db := range dbs {
			go func() {
				time.Sleep(rand.N(2 * time.Millisecond))
				_, err := db.ExecContext(ctx, "UPDATE books SET price = ? WHERE id = 1", n)
				errs <- err
			}()
		}
		won := 0
		for range dbs {
			switch err := <-errs; {
			case err == nil:
				won++
			case !errors.Is(err, sqlfence.ErrConflict) && !collided(err):
				t.Fatalf("round %d: %v", i, err)
			}
		}
		if won != 1 {
			t.Fatalf("round %d: %d nodes wrote to one version", i, won)
		}
		for n := range dbs {
			c.price(t, n, 1)
		}
	}
}

// Tables with Ledger are refused in every way to send a statement, and nothing is written.
func TestLedgerIsRefused(t *testing.T) {
	c := start(t)
	run(t, c.plain[0], "INSERT INTO fencing_tokens VALUES ('books', 5)")
	const text = "UPDATE books SET price = 7 WHERE id = 1"
	for name, send := range map[string]func(ctx context.Context, db *sql.DB) error{
		"alone": func(ctx context.Context, db *sql.DB) error { _, err := db.ExecContext(ctx, text); return err },
		"prepared": func(ctx context.Context, db *sql.DB) error {
			s, err := db.Prepare(text)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			_, err = s.ExecContext(ctx)
			return err
		},
		"returning": func(ctx context.Context, db *sql.DB) error {
			var id int
			return db.QueryRowContext(ctx, "DELETE FROM books WHERE id = 1 RETURNING id").Scan(&id)
		},
		"in a transaction": func(ctx context.Context, db *sql.DB) error {
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			_, err = tx.ExecContext(ctx, text)
			return errors.Join(err, tx.Commit())
		},
	} {
		for rule, rules := range map[string][]sqlfence.Rule{
			"ledger": {sqlfence.Ledger()},
			"both":   {sqlfence.Ledger(), sqlfence.RowFence("fence_token")},
		} {
			db := c.fence(t, 2, rules...)
			for range 2 { // the second run uses a connection that has been checked
				var refused *sqlfence.UnguardableError
				if err := send(holding(5), db); !errors.As(err, &refused) || refused.Table != "books" || !strings.Contains(refused.Reason, "RowFence") {
					t.Errorf("%s, %s: %v, want an UnguardableError", name, rule, err)
				}
			}
			if got := c.price(t, 0, 1); got != 0 {
				t.Fatalf("%s, %s: the row has %d", name, rule, got)
			}
		}
	}
	observed := c.fence(t, 2, sqlfence.Ledger(), sqlfence.InMode(sqlfence.Observe))
	if _, err := observed.ExecContext(holding(5), text); err != nil || c.price(t, 0, 1) != 7 {
		t.Errorf("observed: %v", err)
	}
}

// Three nodes issue tokens of a new name at once. All tokens must be distinct, and each later token must be higher.
func TestIssueOnAllNodes(t *testing.T) {
	c := start(t)
	var stores []*tokens.Store
	for i := range c.dsn {
		store, err := tokens.New(open(t, c.dsn[i]))
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, store)
	}
	var mu sync.Mutex
	var all []int64
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			last := int64(0)
			for range rounds(t) / 4 {
				token, err := stores[worker%3].Issue(context.Background(), "jobs")
				if err != nil {
					t.Errorf("Issue: %v", err)
					return
				}
				if token.Value <= last {
					t.Errorf("token %d behind %d", token.Value, last)
				}
				last = token.Value
				mu.Lock()
				all = append(all, last)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
		t.Errorf("%d tokens, %d of them distinct", len(all), n)
	}
	last := int64(0)
	for i := range rounds(t) {
		token, err := stores[i%3].Issue(context.Background(), "jobs")
		if err != nil || token.Value <= last {
			t.Fatalf("on node %d: %v behind %d, %v", i%3+1, token, last, err)
		}
		last = token.Value
	}
}

// Callers on all nodes compete for a lease. The lease must have one holder at a time, and its tokens must increase.
func TestLeasesOnAllNodes(t *testing.T) {
	c := start(t)
	ctx := context.Background()
	var all []*lease.Leases
	for i := range c.dsn {
		leases, err := lease.New(open(t, c.dsn[i]), harness.Patient())
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := leases.Setup(ctx); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, leases)
	}
	for _, leases := range all {
		if _, err := leases.Acquire(ctx, "jobs", lease.Ephemeral()); !errors.Is(err, lease.ErrNoSessions) {
			t.Errorf("ephemeral: %v, want ErrNoSessions", err)
		}
	}
	last := int64(0)
	for round := range rounds(t) / 4 {
		var mu sync.Mutex
		var held []*lease.Lease
		var wg sync.WaitGroup
		for _, leases := range all {
			wg.Go(func() {
				l, err := leases.Acquire(ctx, "jobs", lease.Retries(0))
				switch {
				case err == nil:
					mu.Lock()
					held = append(held, l)
					mu.Unlock()
				case !errors.Is(err, lease.ErrHeld):
					t.Errorf("Acquire: %v", err)
				}
			})
		}
		wg.Wait()
		if len(held) != 1 {
			t.Fatalf("round %d: %d holders", round, len(held))
		}
		token := held[0].Token().Value
		if token <= last {
			t.Errorf("token %d behind %d", token, last)
		}
		last = token
		if err := held[0].Release(ctx); err != nil {
			t.Fatal(err)
		}
		// An attempt first reads its own node, so each node must have applied the release.
		for i := range c.plain {
			c.price(t, i, 1)
		}
	}
}
