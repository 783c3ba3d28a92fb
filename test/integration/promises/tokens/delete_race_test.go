package tokens_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// served are Delete's statements: the first raises the lower bound to $1, and the second deletes the name.
var served = map[sqlfence.Dialect][2]string{
	sqlfence.Postgres: {
		"INSERT INTO fencing_tokens VALUES ('sqlfence:floor', $1) ON CONFLICT (name) DO UPDATE SET token = GREATEST(fencing_tokens.token, excluded.token)",
		"DELETE FROM fencing_tokens WHERE name = $1",
	},
	sqlfence.MySQL: {
		"INSERT INTO fencing_tokens VALUES ('', ?) ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))",
		"DELETE FROM fencing_tokens WHERE name = ?",
	},
}

// ways are the calls by which a name gets a token.
var ways = []struct {
	name string
	next func(t *testing.T, store *tokens.Store, db *sql.DB, name string) (int64, error)
}{
	{"Issue", func(t *testing.T, store *tokens.Store, _ *sql.DB, name string) (int64, error) {
		token, err := store.Issue(t.Context(), name)
		return token.Value, err
	}},
	{"IssueMany", func(t *testing.T, store *tokens.Store, _ *sql.DB, name string) (int64, error) {
		issued, err := store.IssueMany(t.Context(), name)
		if err != nil {
			return 0, err
		}
		return issued[0].Value, nil
	}},
	{"Ensure", func(t *testing.T, store *tokens.Store, _ *sql.DB, name string) (int64, error) {
		if err := store.Ensure(t.Context(), name); err != nil {
			return 0, err
		}
		token, err := store.Issue(t.Context(), name)
		return token.Value, err
	}},
	{"lease", func(t *testing.T, _ *tokens.Store, db *sql.DB, name string) (int64, error) {
		l, err := harness.NewLeases(t, db).Acquire(t.Context(), name)
		if err != nil {
			return 0, err
		}
		return l.Token().Value, l.Release(t.Context())
	}},
}

// While a deletion of a name is uncommitted, a caller that takes the name's next token waits. The next token must be
// above the deleted ones at every isolation level, and Adopt must refuse the deleted ones, because the deletion has
// raised the lower bound.
func TestNextTokenWaitsForTheDeletion(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t)
		store := setupStore(t, sh.DB)
		harness.NewLeases(t, sh.DB) // creates the leases' table
		token := int64(0)
		deletes := func(name string) *sql.Tx {
			token += 10
			if err := store.Adopt(t.Context(), sqlfence.Token{Name: name, Value: token}); err != nil {
				t.Fatal(err)
			}
			tx := harness.Begin(t.Context(), t, sh.Plain, sql.LevelDefault)
			for i, arg := range []any{token, name} {
				if _, err := tx.Exec(served[s.Dialect][i], arg); err != nil {
					t.Fatal(err)
				}
			}
			return tx
		}
		for _, way := range ways {
			name := "jobs/" + way.name
			var got int64
			err := sh.Behind(t, deletes(name), func() (err error) {
				got, err = way.next(t, store, sh.DB, name)
				return err
			})
			if err != nil || got != token+1 {
				t.Errorf("%s: %d, %v, want %d", way.name, got, err, token+1)
			}
		}
		for _, above := range []int64{0, -1, 1} {
			name := fmt.Sprint("jobs/Adopt", above)
			err := sh.Behind(t, deletes(name), func() error {
				return store.Adopt(t.Context(), sqlfence.Token{Name: name, Value: token + above})
			})
			if (above > 0) != (err == nil) || err != nil && !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("Adopt of the highest token and %d: %v", above, err)
			}
		}
		// A deletion that is rolled back changes nothing.
		tx := deletes("jobs/undone")
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if got := harness.IssueToken(t, store, "jobs/undone"); got != token+1 {
			t.Errorf("Issue: %d, want %d", got, token+1)
		}
	})
}

// On PostgreSQL a statement's snapshot may be older than the deletion of its name and than the name's new row without a
// token.
func TestNextTokenOfANameThatCameBack(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		if s.Dialect != sqlfence.Postgres {
			t.Skip("it waits for the row, and then reads the floor")
		}
		sh := s.Shop(t)
		store := setupStore(t, sh.DB)
		for i, way := range ways {
			name, token := "jobs/"+way.name, int64(10*i+10)
			if err := store.Adopt(t.Context(), sqlfence.Token{Name: name, Value: token}); err != nil {
				t.Fatal(err)
			}
			turn := harness.Begin(t.Context(), t, sh.Plain, sql.LevelDefault)
			if _, err := turn.Exec("SELECT pg_advisory_xact_lock_shared(hashtextextended(concat('sqlfence:', $1::text), 0))", name); err != nil {
				t.Fatal(err)
			}
			session := sh.Session(t, turn)
			var got int64
			waiting := harness.Go(func() (err error) {
				got, err = way.next(t, store, sh.DB, name)
				return err
			})
			sh.WantBlocked(t, session, waiting.Ended())
			for i, arg := range []any{token, name} {
				harness.MustExec(t, sh.Plain, served[s.Dialect][i], arg)
			}
			if err := harness.NewStore(t, sh.Plain).Ensure(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			if err := turn.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := waiting.Wait(); err != nil || got != token+1 {
				t.Errorf("%s: %d, %v, want %d", way.name, got, err, token+1)
			}
		}
	})
}

// A statement shared by several calls has waited for a deletion of their name. No call gets a deleted token, the first
// one included, even if the name has a new row without a token.
func TestSharedTokensWaitForTheDeletion(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		for _, back := range []bool{false, true} {
			sh := s.Shop(t)
			store := setupStore(t, sh.DB)
			if err := store.Adopt(t.Context(), sqlfence.Token{Name: "jobs", Value: 3}); err != nil {
				t.Fatal(err)
			}
			tx := harness.Begin(t.Context(), t, sh.Plain, sql.LevelDefault)
			for i, arg := range []any{3, "jobs"} {
				if _, err := tx.Exec(served[s.Dialect][i], arg); err != nil {
					t.Fatal(err)
				}
			}
			if back {
				if _, err := tx.Exec("INSERT INTO fencing_tokens (name, token) VALUES ('jobs', 0)"); err != nil {
					t.Fatal(err)
				}
			}
			const calls = 6
			var mu sync.Mutex
			var issued []int64
			var all sync.WaitGroup
			call := func() {
				all.Go(func() {
					token, err := store.Issue(t.Context(), "jobs")
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					issued = append(issued, token.Value)
				})
			}
			call()
			waits := func(n int) {
				harness.Eventually(t, fmt.Sprint(n, " who wait"), func() bool { return s.Waiting(t, sh.Plain) >= n })
			}
			waits(1)
			for range calls - 1 { // these share a statement that runs at the same time as the first
				call()
			}
			waits(2)
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			all.Wait()
			slices.Sort(issued)
			if issued[0] <= 3 || len(slices.Compact(slices.Clone(issued))) != calls {
				t.Errorf("back without a token %v: issued %v behind 3", back, issued)
			}
		}
	})
}

// Delete skips a name under which an open transaction has written, and doesn't wait for the transaction. After a
// deletion the name's holder is refused.
func TestDeleteLeavesNamesInUse(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.Ledger())
		ctx := t.Context()
		store := setupStore(t, sh.DB)
		sh.Reset(t, 3)
		harness.IssueToken(t, store, "jobs/1")
		held := sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: 3})
		const write = "UPDATE books SET price = price + 1 WHERE id = 1"
		tx := harness.Begin(held, t, sh.DB, sql.LevelDefault)
		if _, err := tx.ExecContext(held, write); err != nil {
			t.Fatal(err)
		}
		if left, err := store.Delete(ctx, "books", "jobs/1"); err != nil || !slices.Equal(left, []string{"books"}) {
			t.Fatalf("left %q, %v", left, err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		mustDelete(t, store, "books")
		if _, err := sh.DB.ExecContext(held, write); !errors.Is(err, sqlfence.ErrUnknownName) {
			t.Errorf("a write behind the deletion: %v, want ErrUnknownName", err)
		}
		if err := store.Ensure(ctx, "books"); err != nil {
			t.Fatal(err)
		}
		if _, err := sh.DB.ExecContext(held, write); err == nil {
			t.Error("a write under a deleted token landed once the name was back without one")
		}
		if got := harness.IssueToken(t, store, "books"); got != 4 {
			t.Errorf("Issue: %d, want 4", got)
		}
		if _, err := sh.DB.ExecContext(held, write); !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("a write behind the next token: %v, want ErrStale", err)
		}
	})
}

// While names are deleted, other callers issue their tokens. No token is issued twice, and each is above those issued
// before.
func TestDeleteBesideOthers(t *testing.T) {
	harness.EachStoreSetting(t, func(t *testing.T, s harness.Setting) {
		dsn := s.DSN(t)
		if s.Level != sql.LevelDefault {
			dsn = s.AtLevel(t, dsn, s.Level)
		}
		db := s.Raw(t, dsn)
		setupStore(t, db)
		harness.NewLeases(t, db)
		const names, workers, rounds = 3, 6, 40
		var clock atomic.Int64
		var wg sync.WaitGroup
		lists := make([][names][]grant, workers)
		for w := range workers {
			mine := harness.NewStore(t, s.Raw(t, dsn)) // shares no statement with other workers
			rnd := rand.New(rand.NewPCG(rand.Uint64(), uint64(w)))
			wg.Go(func() {
				for range rounds {
					n := rnd.IntN(names)
					name := fmt.Sprint("jobs/", n)
					if w%3 == 0 {
						if _, err := mine.Delete(t.Context(), name, "jobs/0"); err != nil {
							t.Error(err)
							return
						}
						continue
					}
					way := ways[rnd.IntN(len(ways)-1)] // without the last, whose lease would be held
					before := clock.Add(1)
					token, err := way.next(t, mine, db, name)
					if err != nil {
						t.Errorf("%s: %v", way.name, err)
						return
					}
					lists[w][n] = append(lists[w][n], grant{before, clock.Add(1), token})
				}
			})
		}
		wg.Wait()
		for n := range names {
			var all []grant
			for _, list := range lists {
				all = append(all, list[n]...)
			}
			checkGrants(t, all)
		}
	})
}
