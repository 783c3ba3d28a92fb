package group_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// A COMMIT that conflicts with another node's transaction is known to have failed, so Retry runs the transaction again.
func TestCollisionAtCommit(t *testing.T) {
	c := start(t)
	first, second := c.fence(t, 0, sqlfence.RowFence("fence_token")), c.fence(t, 1, sqlfence.RowFence("fence_token"))
	older, err := first.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer older.Rollback()
	if _, err := older.ExecContext(holding(5), "UPDATE books SET price = 5"); err != nil {
		t.Fatal(err)
	}
	if err := write(holding(5), second, true, 6); err != nil {
		t.Fatal(err)
	}
	c.price(t, 0, 1) // waits until the first node has applied the write
	if err := older.Commit(); !collided(err) {
		t.Errorf("COMMIT: %v, want 1213 and a known outcome", err)
	}
	if got := c.price(t, 2, 1); got != 6 {
		t.Errorf("the row has %d", got)
	}
}

// After a conflict at COMMIT, no node may have any part of the transaction, at once or later, whatever the error's
// code.
func TestCollisionsLeaveNothing(t *testing.T) {
	c := start(t)
	first, second := c.fence(t, 0, sqlfence.RowFence("fence_token")), c.fence(t, 1, sqlfence.RowFence("fence_token"))
	errs := map[string]int{}
	for round := range int64(rounds(t)) {
		tx, err := first.Begin()
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"UPDATE books SET price = ? WHERE id = 2", "UPDATE books SET price = ? WHERE id = 1"} {
			if _, err = tx.ExecContext(holding(5), text, -round-1); err != nil {
				break
			}
		}
		done := make(chan error, 1)
		go func() { done <- write1(holding(5), second, round+1) }()
		if err == nil {
			err = tx.Commit()
		} else {
			_ = tx.Rollback()
		}
		other := <-done
		if err != nil {
			errs[err.Error()]++
		}
		want := map[bool]int64{true: -round - 1, false: 0}[err == nil]
		for node := range c.plain {
			if got := c.price(t, node, 2); got != want {
				t.Fatalf("round %d, node %d: row 2 has %d, want %d; COMMIT: %v; the other write: %v", round, node+1, got, want, err, other)
			}
		}
		run(t, c.plain[0], "UPDATE books SET price = 0 WHERE id = 2")
		for node := range c.plain {
			c.price(t, node, 2)
		}
	}
	t.Logf("%v", errs)
}

// write1 updates book 1.
func write1(ctx context.Context, db *sql.DB, price int64) error {
	_, err := db.ExecContext(ctx, "UPDATE books SET price = ? WHERE id = 1", price)
	return err
}

// A node that is cut off from its group executes neither COMMIT nor ROLLBACK, and keeps the transaction open. The next
// user of the connection must not commit this transaction.
func TestPartitionedNodeCommitsNothing(t *testing.T) {
	c := start(t)
	c.of(t, galera)
	for _, end := range []struct { // in this order, because tokens must increase
		name   string
		commit bool
		value  int64
	}{{"commit", true, 100}, {"rollback", false, 200}} {
		name := end.name
		minority, majority := c.fence(t, 0, sqlfence.RowFence("fence_token")), c.fence(t, 1, sqlfence.RowFence("fence_token"))
		minority.SetMaxOpenConns(1)
		tx, err := minority.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(holding(end.value), "UPDATE books SET price = -1 WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		heal := c.isolate(t, 0)
		if end.commit {
			err = tx.Commit()
		} else {
			err = tx.Rollback()
		}
		if err == nil || errors.Is(err, sqlfence.ErrUnknownOutcome) {
			t.Errorf("%s: %v, want an error and a known outcome", name, err)
		}
		if _, err := minority.ExecContext(holding(end.value), "UPDATE books SET price = -2 WHERE id = 2"); err == nil {
			t.Errorf("%s: the minority writes", name)
		}
		if _, err := majority.ExecContext(holding(end.value+1), "UPDATE books SET price = ? WHERE id = 3", end.value); err != nil {
			t.Errorf("%s: the majority: %v", name, err)
		}
		heal()
		if err := write(holding(end.value-1), minority, false, -3); !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("%s: a stale write: %v", name, err)
		}
		next, err := minority.Begin() // BEGIN would commit the transaction that is still open
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Commit(); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[int]int64{1: 0, 2: 0, 3: end.value} {
			if got := c.price(t, 1, id); got != want {
				t.Errorf("%s: row %d has %d, want %d: A WRITE LANDED THAT HAD FAILED", name, id, got, want)
			}
		}
	}
}

// Writers write on a node that crashes, is cut off or is paused. Afterwards the other nodes must have every
// acknowledged write. A failed write must not be on the other nodes, unless it returned ErrUnknownOutcome.
func TestOutcomesMatchTheSurvivingNodes(t *testing.T) {
	for _, fault := range []struct {
		name string
		of   kind // empty: both kinds
		fail func(c *cluster, t *testing.T, node int) (undo func())
	}{
		{"crash", "", (*cluster).kill},
		{"partition", galera, (*cluster).isolate},
		{"pause", replication, (*cluster).pause},
		{"desertion", replication, (*cluster).desert},
	} {
		name, fail := fault.name, fault.fail

		for _, inTx := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in a transaction: %v", name, inTx), func(t *testing.T) {
				c := start(t)
				if fault.of != "" {
					c.of(t, fault.of)
				}
				const writers, node = 6, 2
				run(t, c.plain[0], "DELETE FROM books")
				for id := range writers {
					run(t, c.plain[0], "INSERT INTO books (id) VALUES (?)", id+1)
				}
				c.price(t, node, writers)
				db := c.fence(t, node, sqlfence.RowFence("fence_token"))
				results, begun := make(chan result, writers), make(chan struct{}, writers*10)
				for id := 1; id <= writers; id++ {
					go func() { results <- count(db, id, inTx, begun) }()
				}
				for range cap(begun) {
					<-begun
				}
				undo := fail(c, t, node)
				var all []result
				for range writers {
					all = append(all, <-results)
				}
				undo()
				for _, r := range all {
					applied := c.price(t, 0, r.id)
					t.Logf("row %d: %d acknowledged, %d unknown, %d applied; %v", r.id, r.sure, r.unknown, applied, r.errs)
					if applied < r.sure || applied > r.sure+r.unknown {
						t.Errorf("row %d: %d acknowledged, %d unknown, but %d applied", r.id, r.sure, r.unknown, applied)
					}
				}
				if err := write(holding(writers+1), c.fence(t, node, sqlfence.RowFence("fence_token")), false, 1); err != nil {
					t.Errorf("a node that came back: %v", err)
				}
			})
		}
	}
}

// A result counts a writer's writes by outcome.
type result struct {
	id            int
	sure, unknown int64
	errs          []error
}

// count writes until three writes have failed.
func count(db *sql.DB, id int, inTx bool, begun chan<- struct{}) result {
	r := result{id: id}
	ctx := holding(int64(id))
	for len(r.errs) < 3 {
		err := add(ctx, db, id, inTx)
		switch {
		case err == nil:
			r.sure++
			select {
			case begun <- struct{}{}:
			default:
			}
			continue
		case errors.Is(err, sqlfence.ErrUnknownOutcome):
			r.unknown++
		}
		r.errs = append(r.errs, err)
	}
	return r
}

// add adds 1 to a row's price.
func add(ctx context.Context, db *sql.DB, id int, inTx bool) error {
	const text = "UPDATE books SET price = price + 1 WHERE id = ?"
	if !inTx {
		_, err := db.ExecContext(ctx, text, id)
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, text, id); err != nil {
		return err
	}
	return tx.Commit()
}
