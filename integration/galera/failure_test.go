package galera_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// A COMMIT that collides with another node's is known to have failed, and Retry repeats it.
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
	c.price(t, 0, 1) // the first node has applied it
	if err := older.Commit(); !collided(err) {
		t.Errorf("COMMIT: %v, want 1213 and a known outcome", err)
	}
	if got := c.price(t, 2, 1); got != 6 {
		t.Errorf("the row has %d", got)
	}
}

// A node that lost its group executes neither COMMIT nor ROLLBACK, and keeps the transaction. It
// must not be committed later by whoever gets the connection next.
func TestPartition(t *testing.T) {
	c := start(t)
	for name, end := range map[string]struct {
		commit bool
		value  int64
	}{"commit": {true, 100}, "rollback": {false, 200}} {
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
		next, err := minority.Begin() // which would commit what is open
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

// Of the writes on a node that crashes, all that were acknowledged are on the others, and of the
// others only those whose outcome was called unknown may be.
func TestCrash(t *testing.T) {
	c := start(t)
	const writers = 4
	run(t, c.plain[0], "DELETE FROM books")
	for id := range writers {
		run(t, c.plain[0], "INSERT INTO books (id) VALUES (?)", id+1)
	}
	db := c.fence(t, 2, sqlfence.RowFence("fence_token"))
	type sum struct{ sure, unknown int64 }
	sums := make(chan [2]any, writers)
	begun := make(chan struct{}, writers*100)
	for id := 1; id <= writers; id++ {
		go func() {
			var s sum
			for failed := 0; failed < 3; {
				_, err := db.ExecContext(holding(int64(id)), "UPDATE books SET price = price + 1 WHERE id = ?", id)
				switch {
				case err == nil:
					s.sure++
					select {
					case begun <- struct{}{}:
					default:
					}
				case errors.Is(err, sqlfence.ErrUnknownOutcome):
					s.unknown++
					failed++
				default:
					failed++
				}
			}
			sums <- [2]any{id, s}
		}()
	}
	for range writers * 10 {
		<-begun
	}
	revive := c.kill(t, 2)
	for range writers {
		got := <-sums
		id, s := got[0].(int), got[1].(sum)
		price := int64(-1)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := c.plain[0].QueryRowContext(ctx, "SELECT price FROM books WHERE id = ?", id).Scan(&price)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("row %d: %d acknowledged, %d unknown, %d applied", id, s.sure, s.unknown, price)
		if price < s.sure || price > s.sure+s.unknown {
			t.Errorf("row %d: %d acknowledged, %d unknown, but %d applied", id, s.sure, s.unknown, price)
		}
	}
	revive()
	if err := write(holding(writers+1), c.fence(t, 2, sqlfence.RowFence("fence_token")), false, 1); err != nil {
		t.Errorf("a node that came back: %v", err)
	}
}
