package adopting_test

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A program campaigns for leadership, and writes under it without passing contexts.
type program struct {
	election *lease.Election
	leases   *lease.Leases
	db       *sql.DB

	lost chan error
}

func (p *program) open(ctx context.Context, driverName, dsn string, terms ...lease.Term) (err error) {
	p.election, err = lease.NewElection("books", lease.Callbacks{
		Elected: p.work, // runs while this process leads
		Lost:    p.stopped,
	}, terms...)
	if err != nil {
		return err
	}
	p.db, err = sqlfence.Open(driverName, dsn,
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger()),
		sqlfence.WithTokenSource(p.election.Tokens))
	if err != nil {
		return err
	}
	p.leases, err = lease.New(p.db)
	if err != nil {
		return err
	}
	return p.leases.Setup(ctx)
}

// setPrice has no context. Its write has the token of the lease while this process leads.
func (p *program) setPrice(id, price int) error {
	_, err := p.db.Exec("UPDATE books SET price = $1 WHERE id = $2", price, id)
	switch {
	case errors.Is(err, lease.ErrNotLeader): // refused in this process, nothing was sent
		log.Print(err)
	case errors.Is(err, sqlfence.ErrStale): // refused by the database: another process leads
		log.Print(err)
	}
	return err
}

func (p *program) work(ctx context.Context) { <-ctx.Done() }

func (p *program) stopped(err error) { p.lost <- err }

// start runs a program until stop is called or the test ends.
func start(t *testing.T, b harness.Base, dsn string) (p *program, stop func()) {
	t.Helper()
	p = &program{lost: make(chan error, 1)}
	// The TTL of an hour means that no heartbeat runs during the test, so the program doesn't notice a lost lease.
	if err := p.open(t.Context(), b.DriverName, dsn, lease.TTL(time.Hour), lease.Interval(20*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	p.db = b.Translated(t, p.db, dsn)
	return p, run(t, p.election, p.leases)
}

// run runs an election until stop is called, or the test ends.
func run(t *testing.T, election *lease.Election, leases *lease.Leases) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		defer close(ended)
		var err error
		p := &program{election: election, leases: leases}
		err = p.election.Run(ctx, p.leases) // campaigns, leads, campaigns again, until ctx ends
		if err != nil {
			ended <- err
		}
	}()
	stop = func() {
		began := time.Now()
		held, err := election.Lease()
		cancel()
		for err := range ended {
			t.Errorf("Run: %v", err)
		}
		if err == nil {
			harness.ReleaseLate(t, leases, held.Token(), began)
		}
	}
	t.Cleanup(stop)
	return stop
}

// depose expires the leader's lease in the database. The leader isn't informed.
func depose(t *testing.T, leases *lease.Leases, leader *lease.Election) (held *lease.Lease) {
	t.Helper()
	held, err := leader.Lease()
	if err == nil {
		err = leases.Release(t.Context(), held.LockID())
	}
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// The leader's writes succeed without contexts, and the writes of other processes are refused. The error shows whether
// the process or the database has refused the write.
func TestLeader(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b)
		sh.Reset(t, 0)
		first, stopFirst := start(t, b, sh.Source)
		harness.Eventually(t, "a leader", first.election.IsLeader)
		second, _ := start(t, b, sh.Source)
		if err := first.setPrice(1, 20); err != nil {
			t.Errorf("the leader: %v", err)
		}
		err := second.setPrice(1, 30)
		harness.WantError(t, err, sqlfence.ErrNoFence)
		harness.WantError(t, err, lease.ErrNotLeader)

		held := depose(t, harness.NewLeases(t, sh.Plain), first.election)
		harness.Eventually(t, "the next leader", second.election.IsLeader)
		err = first.setPrice(1, 40)
		harness.WantStale(t, err, 1, 2)
		if err := second.setPrice(1, 50); err != nil {
			t.Errorf("the next leader: %v", err)
		}

		_ = held.Extend(t.Context(), time.Hour) // what a heartbeat calls
		harness.WantError(t, <-first.lost, lease.ErrLeaseLost)
		err = first.setPrice(1, 60)
		harness.WantError(t, err, lease.ErrNotLeader)
		harness.WantError(t, err, lease.ErrLeaseLost)
		stopFirst()
		if got := sh.State(t, true); got != "1:50@2 2:10@0 3:10@0" {
			t.Errorf("the books are %s", got)
		}
	})
}
