package tokens_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// namesGrants lets 16 callers issue tokens of ten names, and returns each name's grants. The callers use the stores in
// turn.
func namesGrants(t *testing.T, stores ...*tokens.Store) map[string][]grant {
	t.Helper()
	var clock atomic.Int64
	var mu sync.Mutex
	var callers sync.WaitGroup
	history := make(map[string][]grant)
	for g := range 16 {
		callers.Go(func() {
			random := rand.New(rand.NewPCG(11, uint64(g)))
			for range 40 {
				name := fmt.Sprint("names/", random.IntN(10))
				before := clock.Add(1)
				token, err := stores[g%len(stores)].Issue(t.Context(), name)
				after := clock.Add(1)
				if err != nil || token.Name != name {
					t.Errorf("Issue of %s = %v, %v", name, token, err)
					return
				}
				mu.Lock()
				history[name] = append(history[name], grant{before, after, token.Value})
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	return history
}

// Callers of many names share statements. Each name's tokens are issued once and rise in real time, and none is
// skipped.
func TestTokensOfManyNamesKeepRealTimeOrder(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		first := setupStore(t, db)
		second := harness.NewStore(t, b.Raw(t, dsn))
		for name, history := range namesGrants(t, first, second) {
			checkGrants(t, history)
			if got := history[len(history)-1].token; history[0].token != 1 || got != int64(len(history)) {
				t.Errorf("%s: %d tokens from %d to %d", name, len(history), history[0].token, got)
			}
		}
	})
}

func TestTokensOfManyNamesAtEveryIsolationLevel(t *testing.T) {
	harness.EachStoreSetting(t, func(t *testing.T, s harness.Setting) {
		if s.Level == sql.LevelDefault {
			t.Skip("there is one level")
		}
		dsn := s.AtLevel(t, s.DSN(t), s.Level)
		first := setupStore(t, s.Raw(t, dsn))
		second := harness.NewStore(t, s.Raw(t, dsn))
		for _, history := range namesGrants(t, first, second) {
			checkGrants(t, history)
		}
	})
}

// While a statement waits, calls for other names gather, and are sent together.
func TestTokensOfManyNamesShareStatements(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect == sqlfence.MySQL {
			t.Skip("each name has a statement of its own")
		}
		dsn := b.DSN(t)
		setupStore(t, b.Raw(t, dsn))
		db, c := b.Counted(t, dsn, sqlfence.WithTable("books"))
		store := harness.NewStore(t, db)
		const n = 60
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprint("names/", i)
		}
		if err := store.Ensure(t.Context(), names...); err != nil {
			t.Fatal(err)
		}
		if _, err := store.IssueMany(t.Context(), names[:n-1]...); err != nil { // not the first tokens
			t.Fatal(err)
		}
		if err := store.Adopt(t.Context(), sqlfence.Token{Name: names[n-1], Value: sqlfence.MaxToken}); err != nil {
			t.Fatal(err)
		}
		c.Reset()
		release := hold(t, b, dsn)
		var callers sync.WaitGroup
		for i, name := range names {
			callers.Go(func() {
				token, err := store.Issue(context.WithoutCancel(t.Context()), name)
				if full := i == n-1; full != errors.Is(err, sqlfence.ErrTokenLimit) || !full && (err != nil || token.Value != 2) {
					t.Errorf("%s: %v, %v", name, token, err)
				}
			})
		}
		harness.Eventually(t, "all callers wait", func() bool { return waiting() == n })
		release()
		callers.Wait()
		if got := len(c.Texts()); got > n/2 {
			t.Errorf("sent %d statements for %d names", got, n)
		}
	})
}

// If an open transaction has written under a name, only this name's callers wait for it.
func TestTokensOfManyNamesWaitForWriters(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		if !s.Networked() {
			t.Skip("a file has one writer")
		}
		sh := s.Shop(t, sqlfence.Ledger())
		sh.Reset(t, 8)
		store := harness.NewStore(t, sh.DB)
		names := make([]string, 20)
		for i := range names {
			names[i] = fmt.Sprint("names/", i)
		}
		if err := store.Ensure(t.Context(), names...); err != nil {
			t.Fatal(err)
		}
		write := func(token int64, r harness.Runner) error {
			_, err := harness.Forms[0].Run(harness.Holding(t, token), r, harness.RowWrites[0])
			return err
		}
		tx := harness.Begin(t.Context(), t, sh.DB, s.Level)
		if err := write(8, tx); err != nil {
			t.Fatal(err)
		}
		session := sh.Session(t, tx)
		ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
		defer cancel()
		var issued sqlfence.Token
		var held *harness.Task
		var others sync.WaitGroup
		for i, name := range names {
			if i == len(names)/2 {
				held = harness.Go(func() (err error) { issued, err = store.Issue(ctx, "books"); return err })
			}
			others.Go(func() {
				if token, err := store.Issue(ctx, name); err != nil || token.Value != 1 {
					t.Errorf("%s: %v, %v", name, token, err)
				}
			})
		}
		others.Wait()
		sh.WantBlocked(t, session, held.Ended())
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := held.Wait(); err != nil {
			t.Fatal(err)
		}
		if issued.Value != 9 {
			t.Errorf("issued %v, want 9", issued)
		}
		harness.WantStale(t, write(8, sh.DB), 8, 9)
	})
}
