//go:build linux

package ha_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

const (
	callLimit = 4 * time.Second
	rest      = 160 * time.Millisecond // between two calls of a client
	perTable  = 8                      // clients; in each half three prefer one node each, and one uses the proxy
)

// A client is a simulated process with its own pool.
type client struct {
	name   string
	table  *table
	db     *sql.DB // fenced, except for the control table
	store  *tokens.Store
	leases *lease.Leases
	trail  *trail
	sent   int
}

// clients starts eight clients for each table, and returns the function that stops them. Four take tokens and write
// under them; four write under stale tokens. The clients prefer different nodes, so that both primaries have clients if
// two nodes accept writes at once.
func clients(t *testing.T, c *cluster, tr *trail) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i := range tables {
		for n := range perTable {
			client := newClient(t, c, tr, &tables[i], n)
			work := client.hold
			if n >= perTable/2 {
				work = client.late
			}
			running.Go(func() {
				for ctx.Err() == nil {
					work(ctx)
					pause(ctx)
				}
			})
		}
	}
	return sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
}

func pause(ctx context.Context) {
	select {
	case <-time.After(rest):
	case <-ctx.Done():
	}
}

// newClient returns the nth client of a table.
func newClient(t *testing.T, c *cluster, tr *trail, table *table, n int) *client {
	t.Helper()
	dsn := c.dsn(n % (perTable / 2))
	if n%(perTable/2) == len(c.nodes) {
		dsn = nodeDSN(c.proxy)
	}
	driver := []string{"pgx", "postgres"}[n/2%2]
	cl := &client{name: fmt.Sprint(table.name, n), table: table, trail: tr}
	if table.rules == nil {
		cl.db = open(t, driver, dsn)
	} else {
		db, err := sqlfence.Open(driver, dsn, sqlfence.WithTable(table.name, table.rules...))
		cl.db = harness.CloseAtEnd(t, db, err)
	}
	cl.db.SetMaxOpenConns(3)
	cl.db.SetConnMaxLifetime(5 * time.Second)
	var err error
	if cl.store, err = tokens.New(cl.db); err != nil {
		t.Fatal(err)
	}
	terms := lease.WithDefaults(lease.TTL(5*time.Second), lease.Timeout(callLimit))
	if cl.leases, err = lease.New(cl.db, terms); err != nil {
		t.Fatal(err)
	}
	return cl
}

// hold takes a token and writes under it.
func (c *client) hold(ctx context.Context) {
	row := 1 + rand.IntN(rows)
	token, done, err := c.take(ctx, c.table.token(row))
	if err != nil {
		c.trail.fail(err)
		return
	}
	defer done()
	for range 3 {
		if !c.table.perRow {
			row = 1 + rand.IntN(rows)
		}
		c.write(ctx, row, token, false)
		pause(ctx)
	}
}

// take returns a token, and the function that releases its lease if it has a lease.
func (c *client) take(ctx context.Context, name string) (token int64, done func(), err error) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	done = func() {}
	var t sqlfence.Token
	if c.table.byLease {
		var l *lease.Lease
		if l, err = c.leases.Acquire(limited, name); err == nil {
			t = l.Token()
			done = func() { _ = l.Release(context.WithoutCancel(ctx)) }
		}
	} else {
		t, err = c.store.Issue(limited, name)
	}
	if err == nil {
		err = limited.Err() // see write
	}
	if err == nil {
		c.trail.issue(name, t.Value, began)
	} else {
		done()
	}
	return t.Value, done, err
}

// late writes under a stale token, if a stale token is known.
func (c *client) late(ctx context.Context) {
	row := 1 + rand.IntN(rows)
	if token := c.trail.stale(c.table, row); token > 0 {
		c.write(ctx, row, token, true)
	}
}

// write sends one write; every other write runs in a transaction.
func (c *client) write(ctx context.Context, row int, token int64, stale bool) {
	c.sent++
	s := sent{client: c.name, write: fmt.Sprint(c.name, "-", c.sent), table: c.table.name, token: token, stale: stale}
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	limited = sqlfence.WithFence(limited, sqlfence.Token{Name: c.table.token(row), Value: token})
	query := "UPDATE " + c.table.name + " SET token = $1, write = $2, version = version + 1 WHERE id = $3"
	err := execute(limited, c.db, c.sent%2 == 0, query, token, s.write, row)
	switch {
	case err == nil && limited.Err() == nil:
		s.outcome = landed
	case err == nil: // lib/pq has cancelled the wait for the standby; the server then reports success with a warning
		s.outcome, err = unknown, limited.Err()
	case errors.Is(err, sqlfence.ErrStale):
		s.outcome = refused
	case errors.Is(err, sqlfence.ErrNotIssued):
		s.outcome = notIssued
	case errors.Is(err, sqlfence.ErrUnknownOutcome), limited.Err() != nil, c.table.rules == nil:
		s.outcome = unknown
	default:
		s.outcome = failed
	}
	c.trail.send(s, row, err)
}

func execute(ctx context.Context, db *sql.DB, inTx bool, query string, args ...any) error {
	if !inTx {
		return oneRow(db.ExecContext(ctx, query, args...))
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := oneRow(tx.ExecContext(ctx, query, args...)); err != nil {
		return err
	}
	return tx.Commit()
}

// oneRow returns an error unless a write has met one row.
func oneRow(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("%d rows, %v", n, err)
	}
	return nil
}
