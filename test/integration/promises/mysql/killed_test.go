package mysql_test

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

// kill kills random other sessions of the database until ctx ends.
func kill(ctx context.Context, t *testing.T, dsn string) {
	db := open(t, dsn)
	db.SetMaxOpenConns(1)
	for ctx.Err() == nil {
		rows, err := db.Query("SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND db = DATABASE()")
		if err != nil {
			t.Error(err)
			return
		}
		var ids []int64
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				t.Error(err)
			}
			ids = append(ids, id)
		}
		_ = rows.Close()
		if len(ids) > 0 {
			how := [...]string{"KILL ", "KILL QUERY "}[rand.N(2)]
			_, _ = db.Exec(fmt.Sprint(how, ids[rand.N(len(ids))])) // fails if the session has ended
		}
		time.Sleep(time.Duration(rand.N(3_000_000)))
	}
}

// Sessions are killed while they work. No token is issued twice, and no lease has two holders. A write is applied if it
// returned no error and isn't applied if it returned one, unless the error is ErrUnknownOutcome.
func TestKilledSessions(t *testing.T) {
	const rounds, books = 150, 8
	v := newVictims(t, books)
	killing, stop := context.WithCancel(t.Context())
	var killer, work sync.WaitGroup
	killer.Go(func() { kill(killing, t, v.dsn) })
	for range 3 {
		work.Go(func() {
			for range rounds {
				v.issue(t)
			}
		})
		work.Go(func() {
			for range rounds {
				v.hold(t)
			}
		})
	}
	for id := range books {
		work.Go(func() { v.count(t, id+1, rounds) })
	}
	work.Wait()
	stop()
	killer.Wait()
	t.Logf("%d tokens, %d writes, %d of them of unknown outcome", len(v.seen), v.done, v.unknown)
	if len(v.seen) == 0 || v.done == 0 {
		t.Error("nothing was done")
	}
}

// victims are clients whose sessions are killed.
type victims struct {
	dsn           string
	plain, fenced *sql.DB
	leases        *lease.Leases
	store         *tokens.Store

	mu            sync.Mutex
	seen          map[sqlfence.Token]bool // all issued tokens
	held          bool                    // a caller holds the lease
	done, unknown int                     // writes
}

func newVictims(t *testing.T, books int) *victims {
	dsn := setup(t)
	v := &victims{dsn: dsn, plain: open(t, dsn), seen: make(map[sqlfence.Token]bool)}
	for id := range books {
		exec(t, v.plain, "INSERT INTO books (id, isbn, fence_token, touched) VALUES (?, ?, 1, 0)", id+1, fmt.Sprint("i", id))
	}
	v.leases, v.store = harness.NewLeases(t, v.plain), harness.NewStore(t, v.plain)
	if err := v.store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 1}); err != nil {
		t.Fatal(err)
	}
	v.fenced = fence(t, dsn, sqlfence.RowFence("fence_token"), sqlfence.Ledger())
	return v
}

// once records a token, and fails the test if the token was issued before.
func (v *victims) once(t *testing.T, token sqlfence.Token) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.seen[token] {
		t.Errorf("%v twice", token)
	}
	v.seen[token] = true
}

func (v *victims) issue(t *testing.T) {
	if token, err := v.store.Issue(t.Context(), "pens"); err == nil {
		v.once(t, token)
	}
}

// hold takes a lease and releases it.
func (v *victims) hold(t *testing.T) {
	l, ok, err := v.leases.TryAcquire(t.Context(), "jobs", lease.TTL(time.Hour))
	if err != nil || !ok {
		return
	}
	v.once(t, l.Token())
	v.mu.Lock()
	if v.held {
		t.Error("held by two")
	}
	v.held = true
	v.mu.Unlock()
	_ = l.Extend(t.Context(), time.Hour)
	v.mu.Lock()
	v.held = false
	v.mu.Unlock()
	for l.Release(context.Background()) != nil && time.Until(l.ExpiresAt()) > 0 && l.Err() == nil {
	}
}

// count writes to a book in rounds, and compares the row's count of writes with the number of writes that succeeded.
func (v *victims) count(t *testing.T, id, rounds int) {
	done, unknown := 0, 0
	for n := range rounds {
		switch err := v.write(t, id, n%2 == 1); {
		case err == nil:
			done++
		case errors.Is(err, sqlfence.ErrUnknownOutcome):
			unknown++
		}
	}
	v.mu.Lock()
	v.done += done
	v.unknown += unknown
	v.mu.Unlock()
	var touched int
	for try := range 50 { // this session may be killed as well
		err := v.plain.QueryRow("SELECT touched FROM books WHERE id = ?", id).Scan(&touched)
		if err == nil {
			break
		}
		if try == 49 || errors.Is(err, sql.ErrNoRows) {
			t.Error(err)
		}
	}
	if touched < done || touched > done+unknown {
		t.Errorf("applied %d times, want %d to %d", touched, done, done+unknown)
	}
}

// write increments a book's column touched, in a transaction or in autocommit.
func (v *victims) write(t *testing.T, id int, inTx bool) error {
	const query = "UPDATE books SET touched = touched + 1 WHERE id = ?"
	ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 1})
	if !inTx {
		_, err := v.fenced.ExecContext(ctx, query, id)
		return err
	}
	tx, err := v.fenced.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	_, err = tx.ExecContext(ctx, query, id)
	switch {
	case errors.Is(err, sqlfence.ErrUnknownOutcome):
		return errors.New("of a statement whose transaction wasn't committed")
	case err != nil:
		return err
	}
	return tx.Commit()
}
