package dqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// A write or a COMMIT that gets no response from a paused or disconnected leader returns ErrUnknownOutcome, and isn't
// sent again. If the leader was killed before the write, the driver notices this before it sends anything, and the
// write succeeds.
func TestUnknownOutcome(t *testing.T) {
	c := ownCluster(t)
	connector := c.connector(t)
	mustExecAll(t, bare(t, connector), schema)
	db := fence(t, connector, sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
	const query = "UPDATE books SET price = price + 1"
	ctx := holding(t.Context(), 5)
	for _, f := range []struct {
		name        string
		fail, after func(old *node)
		commits     bool
	}{
		{"cut off, and killed", func(n *node) { c.network.set(n, true) }, func(n *node) {
			n.kill()
			c.network.set(n, false)
			c.start(t, n)
		}, true},
		{"paused", (*node).pause, (*node).carryOn, false},
	} {
		awaitLead(t, db)
		old := c.awaitLeader(t, nil)
		before := number(t, bare(t, connector), "SELECT price FROM books WHERE id = 1")
		if f.commits {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			mustExec(t, withContext{tx, ctx}, query)
			f.fail(old)
			committed := make(chan error, 1) // COMMIT has no deadline, and may wait as long as the node runs
			go func() { committed <- tx.Commit() }()
			c.awaitLeader(t, old)
			old.kill()
			if err := <-committed; !errors.Is(err, sqlfence.ErrUnknownOutcome) {
				t.Errorf("%s: COMMIT: %v", f.name, err)
			}
		} else {
			conn := leading(t, db)
			old = c.awaitLeader(t, nil)
			f.fail(old)
			late, cancel := context.WithTimeout(ctx, 2*time.Second)
			if _, err := conn.ExecContext(late, query); !errors.Is(err, sqlfence.ErrUnknownOutcome) {
				t.Errorf("%s: %v", f.name, err)
			}
			cancel()
			defer conn.Close()
		}
		c.awaitLeader(t, old)
		f.after(old)
		awaitLead(t, db)
		if n := number(t, bare(t, connector), "SELECT price FROM books WHERE id = 1"); n < before || n > before+1 {
			t.Errorf("%s: the price is %d, and was %d", f.name, n, before)
		}
	}
	old := c.awaitLeader(t, nil)
	awaitLead(t, db)
	before := number(t, bare(t, connector), "SELECT price FROM books WHERE id = 1")
	old.kill()
	if _, err := db.ExecContext(ctx, query); err != nil {
		t.Errorf("after the leader was killed: %v", err)
	}
	if n := number(t, bare(t, connector), "SELECT price FROM books WHERE id = 1"); n != before+1 {
		t.Errorf("the price is %d, and was %d", n, before)
	}
}

// leading returns a connection to the leader. The pool may also have connections to former leaders.
func leading(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	for range 20 {
		conn, err := db.Conn(t.Context())
		if err == nil {
			if err = send(holding(t.Context(), 5), conn, "UPDATE books SET who = who"); err == nil {
				return conn
			}
			_ = conn.Close()
		}
	}
	t.Fatal("no connection leads to the leader")
	return nil
}

// awaitLead waits until the pool's connections are connected to the leader.
func awaitLead(t *testing.T, db *sql.DB) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(holding(t.Context(), 5), 5*time.Second)
		_, err := db.ExecContext(ctx, "UPDATE books SET who = who")
		cancel()
		if err == nil {
			return
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
