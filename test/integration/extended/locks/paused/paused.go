// Package paused plays, with a lock service, the story that a fence is for: process A takes the lock, is stopped, loses it to
// B, and writes late. A test of a service names the service, and how its lock is taken.
package paused

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // A's driver

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/integration/zombie"
	"github.com/sqlfence/sqlfence/tokens"
)

// A Service is a lock service.
type Service struct {
	// Start starts its server for a test, and returns the address; it skips the test where there is no such program.
	Start func(t *testing.T) (address string)

	// Lock waits for the lock, and returns the context of its holder, and what gives the lock back. If the process is
	// stopped, the lock ends within seconds.
	Lock func(ctx context.Context, address string, store *tokens.Store) (held context.Context, unlock func() error, err error)
}

const addressKey = "SQLFENCE_LOCK_SERVICE" // for A

// table is what is written under the lock.
var table = sqlfence.WithTable("results", sqlfence.Resource("report"), sqlfence.Ledger())

// Main is for a TestMain.
func (s Service) Main(m *testing.M) { zombie.Main(m, s.workerA) }

// workerA takes the lock, pauses, and writes late.
func (s Service) workerA(w *zombie.Worker) error {
	open := sql.Open
	if w.Fenced {
		open = func(driver, dsn string) (*sql.DB, error) { return sqlfence.Open(driver, dsn, table) }
	}
	db, err := open("pgx", w.DSN)
	if err != nil {
		return err
	}
	store, err := tokens.New(db)
	if err != nil {
		return err
	}
	ctx, _, err := s.lock(context.Background(), os.Getenv(addressKey), store)
	if err != nil {
		return err
	}
	w.Pause()
	w.Say(zombie.Outcome(zombie.Write(ctx, db, "A")))
	w.Wait()
	return nil
}

// lock calls Lock, a few times if it fails: while the machine stands still, the lock may end before Lock returns.
func (s Service) lock(ctx context.Context, address string, store *tokens.Store) (held context.Context, unlock func() error, err error) {
	for range 5 {
		if held, unlock, err = s.Lock(ctx, address, store); err == nil {
			break
		}
	}
	return held, unlock, err
}

// Test has A write late, without a fence, where it lands, and with one.
func (s Service) Test(t *testing.T) {
	t.Setenv(addressKey, s.Start(t))
	for _, fence := range []bool{false, true} {
		b, dsn := zombie.NewBase(t)
		db := b.Fenced(t, dsn, table)
		store := newStore(t, db)
		said := zombie.Play(t, dsn, fence, func() {
			ctx, unlock, err := s.lock(t.Context(), os.Getenv(addressKey), store)
			if err != nil {
				t.Fatal(err)
			}
			if err := zombie.Write(ctx, db, "B"); err != nil {
				t.Fatal(err)
			}
			if err := unlock(); err != nil {
				t.Error(err)
			}
		})
		zombie.Check(t, db, fence, said)
	}
}

// TestOrder has clients compete, and compares the tokens in the order in which they had the lock.
func (s Service) TestOrder(t *testing.T) {
	address := s.Start(t)
	b, dsn := zombie.NewBase(t)
	store := newStore(t, b.Fenced(t, dsn, table))
	// In a pause a lock ends, and its holder is noted after its successor.
	harness.Undisturbed(t, b.Raw(t, dsn), 300*time.Millisecond, func() error { return s.compete(t.Context(), address, store) })
}

// compete has clients compete, and returns what is wrong with the order of their tokens.
func (s Service) compete(ctx context.Context, address string, store *tokens.Store) error {
	const clients, turns = 4, 8
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		last  int64
		wrong []error
	)
	note := func(token int64) error {
		mu.Lock()
		defer mu.Unlock()
		defer func() { last = token }()
		if token <= last {
			return fmt.Errorf("the holder behind %d has %d", last, token)
		}
		return nil
	}
	for range clients {
		all.Go(func() {
			for range turns {
				held, unlock, err := s.Lock(ctx, address, store)
				if err == nil {
					token, _ := sqlfence.FenceFrom(held, "report")
					err = errors.Join(note(token.Value), unlock())
				}
				if err != nil {
					mu.Lock()
					wrong = append(wrong, err)
					mu.Unlock()
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(wrong...)
}

func newStore(t *testing.T, db *sql.DB) *tokens.Store {
	t.Helper()
	store := harness.NewStore(t, db)
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}
