package dqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

var (
	stormAttempts = flag.Int64("dqlite-attempts", 1500, "stale writes that a storm sends")
	stormSeed     = flag.Uint64("dqlite-seed", 1, "of a storm's random choices")
)

// A storm is a holder that writes under ever newer tokens, concurrent writers under stale tokens, and nodes that fail.
type storm struct {
	newest atomic.Int64 // the newest token under which the rows have been written
	issued atomic.Int64
	tally  tally
}

type tally struct{ stale, landed, refused, unknown, failed, missed, holds, unknownHolds atomic.Int64 }

// stormy are the writers' statements. The argument is the token's value.
var stormy = []string{
	"UPDATE books SET price = ? WHERE id = 1",
	"UPDATE books SET price = ?",
	"INSERT INTO books (id, price) VALUES (1, ?1) ON CONFLICT (id) DO UPDATE SET price = excluded.price",
	"DELETE FROM books WHERE id = 2 AND ? > 0",
}

// faults are the faults of nodes. A storm has one round for each fault.
var faults = []struct {
	name string
	play func(t *testing.T, c *cluster, during func())
	// hangs is true if a COMMIT may wait for the node until the fault is over: go-dqlite's COMMIT has no deadline.
	hangs bool
}{
	{name: "none", play: func(_ *testing.T, _ *cluster, during func()) { during() }},
	{name: "the leader is killed", play: func(t *testing.T, c *cluster, during func()) {
		old := c.awaitLeader(t, nil)
		old.kill()
		during()
		c.start(t, old)
	}},
	{name: "the leader is paused, and goes on", hangs: true, play: func(t *testing.T, c *cluster, during func()) {
		old := c.awaitLeader(t, nil)
		old.pause()
		during()
		old.carryOn()
	}},
	{name: "the leader is cut off from the other nodes, not from clients", play: func(t *testing.T, c *cluster, during func()) {
		old := c.awaitLeader(t, nil)
		c.network.set(old, true)
		during()
		c.network.set(old, false)
	}},
	{name: "a follower is killed", play: func(t *testing.T, c *cluster, during func()) {
		lost := c.nodes[c.awaitLeader(t, nil).id%uint64(len(c.nodes))]
		lost.kill()
		during()
		c.start(t, lost)
	}},
	{name: "another node takes the lead", play: func(t *testing.T, c *cluster, during func()) {
		c.handOver(t)
		during()
	}},
}

// Whatever happens to the nodes, no stale write lands, no acknowledged write of the holder is lost, and no token is
// issued twice.
func TestStorm(t *testing.T) {
	c := ownCluster(t)
	connector := c.connector(t)
	plain := bare(t, connector)
	mustExecAll(t, plain, schema)
	store := storeOf(t, plain)
	for name, rules := range map[string][]sqlfence.Rule{
		"RowFence":            {sqlfence.RowFence("fence_token")},
		"RowFence and Ledger": {sqlfence.RowFence("fence_token"), sqlfence.Ledger()},
	} {
		t.Run(name, func(t *testing.T) {
			mustExec(t, plain, "UPDATE books SET price = fence_token")
			s := &storm{}
			s.newest.Store(number(t, plain, "SELECT fence_token FROM books WHERE id = 3"))
			s.run(t, c, fence(t, connector, sqlfence.WithTable("books", rules...)), store)
		})
	}
}

func (s *storm) run(t *testing.T, c *cluster, db *sql.DB, store *tokens.Store) {
	began := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { s.hold(ctx, t, db, store) })
	for i := range 8 {
		all.Go(func() { s.write(ctx, t, db, rand.New(rand.NewPCG(*stormSeed, uint64(i)))) })
	}
	each := *stormAttempts / 2 / int64(len(faults))
	for _, f := range faults {
		before, held := s.tally.stale.Load(), s.tally.holds.Load()
		during := held + 2
		if f.hangs {
			during = held
		}
		f.play(t, c, func() { s.await(t, f.name, before+each/2, during) })
		s.await(t, f.name+", and is over", before+each, held+4)
		t.Logf("%s: %d stale, %d unknown, %d holds", f.name, s.tally.stale.Load()-before, s.tally.unknown.Load(), s.tally.holds.Load()-held)
	}
	stop()
	all.Wait()
	t.Logf("%d stale attempts, %d landed, %d refused, %d unknown, %d failed, %d met no row; %d writes of holders, "+
		"%d unknown; the newest token is %d; %v", s.tally.stale.Load(), s.tally.landed.Load(), s.tally.refused.Load(),
		s.tally.unknown.Load(), s.tally.failed.Load(), s.tally.missed.Load(), s.tally.holds.Load(),
		s.tally.unknownHolds.Load(), s.newest.Load(), time.Since(began).Round(time.Second))
}

// await waits for the given numbers of stale attempts and of holders' writes.
func (s *storm) await(t *testing.T, what string, stale, holds int64) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); s.tally.stale.Load() < stale || s.tally.holds.Load() < holds; {
		if t.Failed() || time.Now().After(deadline) {
			t.Fatalf("%s: %d of %d stale attempts, %d of %d writes", what, s.tally.stale.Load(), stale, s.tally.holds.Load(), holds)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// hold takes tokens and writes once under each. A row must keep an acknowledged write until the holder's next write.
func (s *storm) hold(ctx context.Context, t *testing.T, db *sql.DB, store *tokens.Store) {
	for ctx.Err() == nil && !t.Failed() {
		issuing, cancel := context.WithTimeout(ctx, 5*time.Second)
		token, err := store.Issue(issuing, "books")
		cancel()
		if err != nil {
			continue
		}
		if last := s.issued.Swap(token.Value); token.Value <= last {
			t.Errorf("THE TOKEN %d WAS ISSUED AFTER %d", token.Value, last)
		}
		under := holding(ctx, token.Value)
		for ctx.Err() == nil {
			err := s.holdOnce(under, t, db, token.Value)
			switch {
			case err == nil:
				s.tally.holds.Add(1)
				s.newest.Store(token.Value)
			case errors.Is(err, sqlfence.ErrStale):
				t.Errorf("the newest holder, of %d: %v", token.Value, err)
			case errors.Is(err, sqlfence.ErrUnknownOutcome):
				s.tally.unknownHolds.Add(1)
				continue
			default:
				continue
			}
			break
		}
	}
}

// holdOnce writes all rows in a transaction. Before the third write it checks that the row holds the last acknowledged
// write.
func (s *storm) holdOnce(ctx context.Context, t *testing.T, db *sql.DB, value int64) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for id := range int64(3) {
		var price, mark int64 // the transaction has written before, so it reads the newest state
		if err := tx.QueryRowContext(ctx, "SELECT price, fence_token FROM books WHERE id = 3").Scan(&price, &mark); err != nil {
			return err
		} else if id == 2 && (price < s.newest.Load() || price != mark && s.newest.Load() > 0) {
			t.Errorf("THE ROW HAS THE PRICE %d UNDER %d, BUT %d WAS ACKNOWLEDGED", price, mark, s.newest.Load())
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO books (id, price) VALUES (?1, ?2) "+
			"ON CONFLICT (id) DO UPDATE SET price = excluded.price", id+1, value); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// write writes under one of the latest stale tokens, outside a transaction or in one. The transaction may read before.
func (s *storm) write(ctx context.Context, t *testing.T, db *sql.DB, random *rand.Rand) {
	for ctx.Err() == nil && !t.Failed() {
		newest := s.newest.Load()
		value := max(newest-1-random.Int64N(4), 1)
		query := stormy[random.IntN(len(stormy))]
		changed, err := writeOnce(holding(ctx, value), db, query, value, random.IntN(3))
		if ctx.Err() != nil {
			return
		}
		s.tally.stale.Add(1)
		switch {
		case err == nil && changed > 0:
			s.tally.landed.Add(1)
			t.Errorf("%s under %d, after %d: A STALE WRITE LANDED", query, value, newest)
		case err == nil:
			s.tally.missed.Add(1)
		case errors.Is(err, sqlfence.ErrStale):
			s.tally.refused.Add(1)
		case errors.Is(err, sqlfence.ErrUnknownOutcome):
			s.tally.unknown.Add(1)
		default:
			s.tally.failed.Add(1)
		}
	}
}

func writeOnce(ctx context.Context, db *sql.DB, query string, value int64, how int) (changed int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var to execer = db
	commit := func() error { return nil }
	if how > 0 {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return 0, err
		}
		defer tx.Rollback()
		to, commit = tx, tx.Commit
		if how > 1 {
			var n sql.NullInt64
			if err := tx.QueryRowContext(ctx, "SELECT sum(price) FROM books").Scan(&n); err != nil {
				return 0, err
			}
		}
	}
	r, err := to.ExecContext(ctx, query, value)
	if err != nil {
		return 0, err
	}
	if changed, err = r.RowsAffected(); err != nil {
		return 0, err
	}
	return changed, commit()
}
