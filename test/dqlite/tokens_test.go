package dqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/changes"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/tokens"
)

func storeOf(t testing.TB, db *sql.DB) *tokens.Store {
	t.Helper()
	store, err := tokens.New(db)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

// Several pools issue tokens concurrently. No token is issued twice, and each caller's tokens increase.
func TestTokens(t *testing.T) {
	connector := nodes(t).connector(t)
	stores := []*tokens.Store{storeOf(t, bare(t, connector)), storeOf(t, fence(t, connector))}
	const callers, each = 4, 15
	var mu sync.Mutex
	seen := map[sqlfence.Token]bool{}
	note := func(token sqlfence.Token, last int64) {
		mu.Lock()
		defer mu.Unlock()
		if seen[token] || token.Value <= last {
			t.Errorf("%v was issued twice, or after %d", token, last)
		}
		seen[token] = true
	}
	var running sync.WaitGroup
	for i := range callers {
		store := stores[i%2]
		running.Go(func() {
			last := map[string]int64{}
			for range each {
				token, err := store.Issue(t.Context(), "books")
				if err != nil {
					t.Errorf("Issue: %v", err)
					return
				}
				note(token, last["books"])
				last["books"] = token.Value
				both, err := store.IssueMany(t.Context(), "books", "pens")
				if err != nil {
					t.Errorf("IssueMany: %v", err)
					return
				}
				for _, token := range both {
					note(token, last[token.Name])
					last[token.Name] = token.Value
				}
			}
		})
	}
	running.Wait()
	store := stores[0]
	if token, err := store.Current(t.Context(), "books"); err != nil || token.Value != 2*callers*each {
		t.Errorf("%v is the newest, %v", token, err)
	}
	if err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 1000}); err != nil {
		t.Error(err)
	}
	if err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 999}); !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("Adopt of a lower one: %v", err)
	}
	if _, err := bare(t, connector).ExecContext(t.Context(), "UPDATE fencing_tokens SET token = 1"); err == nil {
		t.Error("a token fell")
	}
	if err := store.Setup(t.Context()); err != nil {
		t.Error(err)
	}
}

// A held transaction commits only under the newest token. No token is issued until the transaction has ended.
func TestHold(t *testing.T) {
	connector := nodes(t).connector(t)
	plain := bare(t, connector)
	mustExecAll(t, plain, schema)
	store := storeOf(t, plain)
	old, err := store.Issue(t.Context(), "books")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := plain.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := store.Hold(t.Context(), tx, old); err != nil {
		t.Fatal(err)
	}
	issued := make(chan error, 1)
	go func() {
		_, err := store.Issue(context.Background(), "books")
		issued <- err
	}()
	mustExec(t, tx, "UPDATE books SET price = 7")
	if n, err := store.Current(t.Context(), "books"); err != nil || n != old {
		t.Errorf("%v is the newest while the transaction is open, %v", n, err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-issued; err != nil {
		t.Fatal(err)
	}
	again, err := plain.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Rollback()
	if err := store.Hold(t.Context(), again, old); !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("Hold under a replaced token: %v", err)
	}
}

// One of several callers gets the lease. The next holder gets a higher token, and the first holder's late write is
// refused.
func TestLeases(t *testing.T) {
	connector := nodes(t).connector(t)
	mustExecAll(t, bare(t, connector), schema)
	db := fence(t, connector, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
	leases, err := lease.New(db)
	if err != nil {
		t.Fatal(err)
	}
	if err := leases.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, err := leases.Acquire(t.Context(), "books", lease.TTL(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := leases.TryAcquire(t.Context(), "books"); ok || err != nil {
		t.Errorf("a second lease: %v, %v", ok, err)
	}
	mustExec(t, withContext{db, first.Context()}, "UPDATE books SET price = 1")
	if err := first.Release(t.Context()); err != nil {
		t.Error(err)
	}
	second, err := leases.Acquire(t.Context(), "books")
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, withContext{db, second.Context()}, "UPDATE books SET price = 2")
	late := sqlfence.WithFence(t.Context(), first.Token())
	if _, err := db.ExecContext(late, "UPDATE books SET price = 1"); !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("the late write: %v", err)
	}
	if err := second.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := leases.Tx(t.Context(), "books", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE books SET price = 3")
		return err
	}); err != nil {
		t.Error(err)
	}
}

type withContext struct {
	execer
	ctx context.Context
}

func (w withContext) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	return w.execer.ExecContext(w.ctx, query, args...)
}

// If several users request an edit lock of a row at once, exactly one gets it.
func TestRowLocks(t *testing.T) {
	connector := nodes(t).connector(t)
	plain := bare(t, connector)
	mustExecAll(t, plain, schema)
	books, err := rowlock.New(fence(t, connector, sqlfence.WithTable("books", sqlfence.EditLock("who", "since", "till"))),
		"books", rowlock.WithColumns("who", "since", "till"), rowlock.WithSerial("version"))
	if err != nil {
		t.Fatal(err)
	}
	granted := make(chan string, 4)
	var asking sync.WaitGroup
	for _, user := range []string{"ada", "grace", "joan", "mary"} {
		asking.Go(func() {
			switch _, err := books.Request(t.Context(), rowlock.Edit{ID: 1, User: user, Serial: 5}); {
			case err == nil:
				granted <- user
			case !errors.Is(err, sqlfence.ErrLocked):
				t.Errorf("Request: %v", err)
			}
		})
	}
	asking.Wait()
	lock, err := books.Current(t.Context(), 1)
	if err != nil || len(granted) != 1 || lock.By != <-granted {
		t.Errorf("%v has the lock, %v", lock.By, err)
	}
	err = books.SaveRelease(t.Context(), rowlock.Edit{ID: 1, User: lock.By, Serial: 5}, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE books SET price = 9, version = version + 1 WHERE id = 1")
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Each commit that changes a table increments the table's change count, whether or not the client uses sqlfence.
func TestChanges(t *testing.T) {
	connector := nodes(t).connector(t)
	plain := bare(t, connector)
	mustExecAll(t, plain, schema)
	counter, err := changes.New(plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := counter.Setup(t.Context(), "books"); err != nil {
		t.Fatal(err)
	}
	before, err := counter.Count(t.Context(), "books")
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, plain, "UPDATE books SET price = 9")
	if after, err := counter.Count(t.Context(), "books"); err != nil || after <= before {
		t.Errorf("%d after %d, %v", after, before, err)
	}
}
