package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// An electionProcess is a simulated process with its own pool. Its writes take their token from the election.
type electionProcess struct {
	*lease.Election
	db   *sql.DB
	lost chan error
	stop func()
}

func newElectionProcess(t *testing.T, sh *harness.Shop, rule sqlfence.Rule) *electionProcess {
	t.Helper()
	p := &electionProcess{lost: make(chan error, 1)}
	var err error
	p.Election, err = lease.NewElection("books", lease.Callbacks{Lost: func(err error) { p.lost <- err }},
		// The TTL of an hour means that no heartbeat runs during the test, so the process doesn't notice the loss.
		lease.TTL(time.Hour), lease.Interval(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	p.db = sh.Fenced(t, sh.Source, harness.Books(rule), sqlfence.WithTokenSource(p.Tokens))
	leases, err := lease.New(p.db, harness.Patient())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, leases) }()
	stopped := false
	p.stop = func() {
		if stopped {
			return
		}
		stopped = true
		began := time.Now()
		held, err := p.Lease()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		if err == nil {
			harness.ReleaseLate(t, leases, held.Token(), began)
		}
	}
	t.Cleanup(p.stop)
	return p
}

// contextless are all ways in which code without contexts writes.
var contextless = map[string]func(db *sql.DB, price int) error{
	"DB.Exec": func(db *sql.DB, price int) error {
		_, err := db.Exec("UPDATE books SET price = $1 WHERE id = 1", price)
		return err
	},
	"DB.Prepare": func(db *sql.DB, price int) error {
		stmt, err := db.Prepare("UPDATE books SET price = $1 WHERE id = 1")
		if err != nil {
			return err
		}
		_, err = stmt.Exec(price)
		return errors.Join(err, harness.CloseStmt(stmt))
	},
	"DB.QueryRow": func(db *sql.DB, price int) error {
		return db.QueryRow("UPDATE books SET price = $1 WHERE id = 1 RETURNING id", price).Scan(new(int))
	},
	"Tx": func(db *sql.DB, price int) error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		defer tx.Rollback()
		for range 2 {
			if _, err := tx.Exec("UPDATE books SET price = $1 WHERE id = 1", price); err != nil {
				return err
			}
		}
		return tx.Commit()
	},
}

// Only the leader writes. The fence stops a former leader that doesn't know of its loss. A former leader that knows is
// stopped before anything is sent.
func TestElectionFencesWritesWithoutContexts(t *testing.T) {
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				sh, direct := leaseShop(t, harness.Setting{Base: b}, fence.Rule)
				first := newElectionProcess(t, sh, fence.Rule)
				harness.Eventually(t, "a leader", first.IsLeader)
				second := newElectionProcess(t, sh, fence.Rule)
				writes := maps.Clone(contextless)
				if !b.Returns() {
					delete(writes, "DB.QueryRow")
				}
				wantWrites(t, writes, first, 20)
				wantNoWrites(t, sh, writes, second, sqlfence.ErrNoFence, lease.ErrNotLeader)

				held, err := first.Lease()
				if err == nil {
					err = direct.Release(t.Context(), held.LockID())
				}
				if err != nil {
					t.Fatal(err)
				}
				harness.Eventually(t, "the next leader", second.IsLeader)
				wantWrites(t, writes, second, 40)
				wantNoWrites(t, sh, writes, first, sqlfence.ErrStale)
				_ = held.Extend(t.Context(), time.Hour) // like a heartbeat
				harness.WantError(t, <-first.lost, lease.ErrLeaseLost)
				wantNoWrites(t, sh, writes, first, sqlfence.ErrNoFence, sqlfence.ErrStale, lease.ErrLeaseLost)
				for leader, err := range direct.Watch(t.Context(), "books", time.Second) {
					if err != nil || leader.Token.Value != 2 {
						t.Errorf("Watch: %v, %v", leader, err)
					}
					break
				}

				second.stop()
				harness.Eventually(t, "the first to lead again", first.IsLeader)
				if err := contextless["Tx"](first.db, 70); err != nil {
					t.Errorf("elected again: %v", err)
				}
				first.stop()
				if locked, err := direct.IsLocked(t.Context(), "books"); locked || err != nil {
					t.Errorf("at the end: locked %v, %v", locked, err)
				}
				if got := sh.State(t, false); got != "1:70" {
					t.Errorf("books: %s", got)
				}
			})
		})
	}
}

// wantWrites checks that a process can write in each way.
func wantWrites(t *testing.T, writes map[string]func(*sql.DB, int) error, by *electionProcess, price int) {
	t.Helper()
	for name, write := range writes {
		if err := write(by.db, price); err != nil {
			t.Errorf("%s of the leader: %v", name, err)
		}
	}
}

// wantNoWrites checks that a process that isn't the leader can't write. Each error must be all of targets.
func wantNoWrites(t *testing.T, sh *harness.Shop, writes map[string]func(*sql.DB, int) error, by *electionProcess, targets ...error) {
	t.Helper()
	unchanged := sh.Unchanged(t)
	for _, write := range writes {
		err := write(by.db, 50)
		for _, target := range targets {
			harness.WantError(t, err, target)
		}
	}
	unchanged()
}

// In the leader's process, a request whose context has a token writes under this token instead of the election's.
func TestElectionBesideTokensOfContexts(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh, _ := leaseShop(t, harness.Setting{Base: b}, sqlfence.RowFence("fence_token"))
		p := newElectionProcess(t, sh, sqlfence.RowFence("fence_token"))
		harness.Eventually(t, "a leader", p.IsLeader)
		held, err := p.Lease()
		if err != nil {
			t.Fatal(err)
		}
		if err := contextless["Tx"](p.db, 20); err != nil {
			t.Error(err)
		}
		request := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 5})
		if err := setBookPrice(request, p.db, 30); err != nil {
			t.Errorf("with a token of its own: %v", err)
		}
		harness.WantError(t, contextless["DB.Exec"](p.db, 40), sqlfence.ErrStale)
		if held.Err() != nil || sh.State(t, true) != "1:30@5" {
			t.Errorf("books: %s; %v", sh.State(t, true), held.Err())
		}
	})
}

// A transaction that has written under one leadership must not write under the token of the next.
func TestTransactionThatOutlivesItsLeadership(t *testing.T) {
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				sh, _ := leaseShop(t, harness.Setting{Base: b}, fence.Rule)
				now := sqlfence.Token{Name: "books", Value: 1}
				sh.Raise(t, "books", 1)
				db := sh.Fenced(t, sh.Source, harness.Books(fence.Rule), sqlfence.WithTokenSource(
					func(context.Context, []string) ([]sqlfence.Token, error) { return []sqlfence.Token{now}, nil }))
				tx := harness.Begin(context.Background(), t, db, sql.LevelDefault)
				if _, err := tx.Exec("UPDATE books SET price = 20"); err != nil {
					t.Fatal(err)
				}
				now.Value = 2
				_, err := tx.Exec("UPDATE books SET price = 30")
				harness.WantError(t, err, sqlfence.ErrStale)
				now.Value = 1 // a statement that wasn't sent doesn't end the transaction
				if _, err := tx.Exec("UPDATE books SET price = 40"); err != nil {
					t.Error(err)
				}
				if err := tx.Commit(); err != nil {
					t.Error(err)
				}
				if got := sh.State(t, false); got != "1:40" {
					t.Errorf("books: %s", got)
				}
			})
		})
	}
}
