package tokens_test

import (
	"database/sql"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// A grant is one call of Issue: the clock's readings before and after it, and
// the token.
type grant struct{ before, after, token int64 }

// grants lets 64 callers issue 50 tokens each. The callers use the stores in turn.
func grants(t *testing.T, stores ...*tokens.Store) []grant {
	t.Helper()
	var clock atomic.Int64
	var wg sync.WaitGroup
	lists := make([][]grant, 64)
	for g := range lists {
		wg.Go(func() {
			for range 50 {
				before := clock.Add(1)
				token, err := stores[g%len(stores)].Issue(t.Context(), "books")
				if err != nil {
					t.Error(err)
					return
				}
				lists[g] = append(lists[g], grant{before, clock.Add(1), token.Value})
			}
		})
	}
	wg.Wait()
	return slices.Concat(lists...)
}

// checkGrants fails the test if a token was issued twice, or if a call that began after another call's end got a lower
// token.
func checkGrants(t *testing.T, history []grant) {
	t.Helper()
	slices.SortFunc(history, func(a, b grant) int { return int(a.token - b.token) })
	// The loop goes from the highest token down. earliest is the earliest end of a call with a higher token. A call
	// with a lower token must have begun before it.
	earliest := int64(1 << 62)
	for i, g := range slices.Backward(history) {
		if i > 0 && history[i-1].token == g.token {
			t.Errorf("token %d was given twice", g.token)
		}
		if g.before > earliest {
			t.Errorf("token %d was given by a call that began after one with a higher token had ended", g.token)
		}
		earliest = min(earliest, g.after)
	}
}

func TestTokensKeepRealTimeOrder(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		first := setupStore(t, db)
		second := harness.NewStore(t, b.Raw(t, dsn))
		checkGrants(t, grants(t, first, second))
		if got, err := first.Current(t.Context(), "books"); err != nil || got.Value != 64*50 {
			t.Errorf("Current = %v, %v; want %d: nothing failed, so nothing is skipped", got, err, 64*50)
		}
	})
}

func TestTokensAtEveryIsolationLevel(t *testing.T) {
	harness.EachStoreSetting(t, func(t *testing.T, s harness.Setting) {
		if s.Level == sql.LevelDefault {
			t.Skip("there is one level")
		}
		dsn := s.AtLevel(t, s.DSN(t), s.Level)
		first := setupStore(t, s.Raw(t, dsn))
		second := harness.NewStore(t, s.Raw(t, dsn))
		checkGrants(t, grants(t, first, second))
	})
}

func TestTokensInEveryPgxMode(t *testing.T) {
	pgx := harness.Base{Name: "pgx", DriverName: "pgx", Dialect: sqlfence.Postgres}
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			ctx := t.Context()
			store := setupStore(t, pgx.Raw(t, pgx.DSN(t)+"&default_query_exec_mode="+mode))
			if err := store.Ensure(ctx, "books", `a'b"c\`); err != nil {
				t.Fatal(err)
			}
			for want := int64(1); want <= 3; want++ {
				if got := harness.IssueToken(t, store, "books"); got != want {
					t.Errorf("books = %d, want %d", got, want)
				}
			}
			if err := store.Adopt(ctx, sqlfence.Token{Name: "books", Value: 2}); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("Adopt of a lower token: %v", err)
			}
			if got, err := store.Current(ctx, "books"); err != nil || got.Value != 3 {
				t.Errorf("Current = %v, %v; want 3", got, err)
			}
		})
	}
}
