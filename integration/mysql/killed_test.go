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
			_, _ = db.Exec(fmt.Sprint(how, ids[rand.N(len(ids))])) // it may be gone
		}
		time.Sleep(time.Duration(rand.N(3_000_000)))
	}
}

// Sessions that are killed in the midst of what they do: no token is issued twice, no lease is held
// by two, and a write is applied if it returned no error, isn't if it returned one, and
// may be only if that is ErrUnknownOutcome.
func TestKilledSessions(t *testing.T) {
	const rounds = 150
	dsn := setup(t)
	plain := open(t, dsn)
	for id := range 8 {
		exec(t, plain, "INSERT INTO books (id, isbn, fence_token, touched) VALUES (?, ?, 1, 0)", id+1, fmt.Sprint("i", id))
	}
	leases, err := lease.New(plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := leases.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	store, err := tokens.New(plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 1}); err != nil {
		t.Fatal(err)
	}
	fenced := fence(t, dsn, sqlfence.RowFence("fence_token"), sqlfence.Ledger())
	ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 1})

	killing, stop := context.WithCancel(t.Context())
	var killer, work sync.WaitGroup
	killer.Go(func() { kill(killing, t, dsn) })
	var mu sync.Mutex
	seen := make(map[sqlfence.Token]bool)
	held := make(map[string]bool)
	counts := make(map[string]int)
	once := func(token sqlfence.Token) {
		mu.Lock()
		defer mu.Unlock()
		if seen[token] {
			t.Errorf("%v twice", token)
		}
		seen[token] = true
		counts["tokens"]++
	}
	for range 3 {
		work.Go(func() {
			for range rounds {
				if token, err := store.Issue(t.Context(), "pens"); err == nil {
					once(token)
				}
			}
		})
		work.Go(func() {
			for range rounds {
				l, ok, err := leases.TryAcquire(t.Context(), "jobs", lease.TTL(time.Minute))
				if err != nil || !ok {
					continue
				}
				once(l.Token())
				mu.Lock()
				if held["jobs"] {
					t.Error("held by two")
				}
				held["jobs"] = true
				mu.Unlock()
				_ = l.Extend(t.Context(), time.Minute)
				mu.Lock()
				held["jobs"] = false
				mu.Unlock()
				for l.Release(context.Background()) != nil && time.Until(l.ExpiresAt()) > 0 && l.Err() == nil {
				}
			}
		})
	}
	for id := range 8 {
		work.Go(func() {
			done, unknown := 0, 0
			for n := range rounds {
				var err error
				if n%2 == 0 {
					_, err = fenced.ExecContext(ctx, "UPDATE books SET touched = touched + 1 WHERE id = ?", id+1)
				} else {
					err = func() error {
						tx, err := fenced.BeginTx(ctx, nil)
						if err != nil {
							return err
						}
						defer tx.Rollback()
						if _, err := tx.ExecContext(ctx, "UPDATE books SET touched = touched + 1 WHERE id = ?", id+1); err != nil {
							if errors.Is(err, sqlfence.ErrUnknownOutcome) {
								return errors.New("of a statement whose transaction wasn't committed")
							}
							return err
						}
						return tx.Commit()
					}()
				}
				switch {
				case err == nil:
					done++
				case errors.Is(err, sqlfence.ErrUnknownOutcome):
					unknown++
				}
			}
			mu.Lock()
			counts["done"] += done
			counts["unknown"] += unknown
			mu.Unlock()
			var touched int
			for try := 0; try < 50; try++ {
				err := plain.QueryRow("SELECT touched FROM books WHERE id = ?", id+1).Scan(&touched)
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
		})
	}
	work.Wait()
	stop()
	killer.Wait()
	t.Log(counts)
	if counts["tokens"] == 0 || counts["done"] == 0 {
		t.Error("nothing was done")
	}
}
