package tokens_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// issueMany returns the tokens of names, as "name=token".
func issueMany(t testing.TB, store *tokens.Store, names ...string) (issued []string) {
	t.Helper()
	list, err := store.IssueMany(t.Context(), names...)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range list {
		issued = append(issued, fmt.Sprintf("%s=%d", token.Name, token.Value))
	}
	return issued
}

func wantIssued(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("issued %v, want %v", got, want)
	}
}

func TestTokensIssueMany(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		store := setupStore(t, db)
		wantIssued(t, issueMany(t, store))
		wantIssued(t, issueMany(t, store, "pens", "books"), "pens=1", "books=1")
		harness.IssueToken(t, store, "books")
		wantIssued(t, issueMany(t, store, "pens", "hats", "books"), "pens=2", "hats=1", "books=3")
		wantIssued(t, issueMany(t, store, "hats"), "hats=2")
		odd := []string{"Books", "books ", "本🔒", "\u00e9", `a'b"c\d`, "%s", ":", strings.Repeat("x", 512)}
		for want := 1; want < 3; want++ {
			var all []string
			for _, name := range odd {
				all = append(all, fmt.Sprintf("%s=%d", name, want))
			}
			wantIssued(t, issueMany(t, store, odd...), all...)
		}
		if _, err := store.Repair(t.Context(), 50); err != nil {
			t.Fatal(err)
		}
		wantIssued(t, issueMany(t, store, "new", "books"), "new=51", "books=51")
	})
}

func TestTokensIssueManyAsManyAsItTakes(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		store := setupStore(t, db)
		var names, want []string
		for i := range 100 {
			names = append(names, fmt.Sprint("books/", 99-i))
			want = append(want, names[i]+"=1")
		}
		wantIssued(t, issueMany(t, store, names...), want...)
	})
}

// If one of the names is refused for any reason, the other names keep their tokens.
func TestTokensIssueManyIsAllOrNothing(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		ctx := t.Context()
		store := setupStore(t, db, tokens.WithLogger(slog.New(slog.DiscardHandler)))
		harness.IssueToken(t, store, "books")
		if err := store.Adopt(ctx, sqlfence.Token{Name: "full", Value: sqlfence.MaxToken - 1}); err != nil {
			t.Fatal(err)
		}
		wantIssued(t, issueMany(t, store, "full", "books"), fmt.Sprint("full=", int64(sqlfence.MaxToken)), "books=2")
		harness.MustExec(t, db, "INSERT INTO fencing_tokens (name, token) VALUES ('negative', -5)")
		rows := harness.LedgerRows(t, db)
		for _, test := range []struct {
			names []string
			is    error
			text  string
		}{
			{[]string{"books", "full", "pens"}, sqlfence.ErrTokenLimit, `"full" stands at`},
			{[]string{"negative", "books"}, nil, "negative token -5"},
			{[]string{"books", "a\x00b"}, sqlfence.ErrInvalid, ""},
			{[]string{"books", "e\u0301", "\u00e9"}, sqlfence.ErrInvalid, "comes twice"},
			{make([]string, 101), sqlfence.ErrInvalid, "at most 100"},
		} {
			got, err := store.IssueMany(ctx, test.names...)
			if err == nil || got != nil || test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%.60q: %v, %v; want %v, %q", test.names, got, err, test.is, test.text)
			}
		}
		harness.WantLedger(t, db, rows...)
		if _, err := store.Repair(ctx, sqlfence.MaxToken, tokens.AboveWarnToken()); err != nil {
			t.Fatal(err)
		}
		rows = harness.LedgerRows(t, db)
		if _, err := store.IssueMany(ctx, "new", "newer"); !errors.Is(err, sqlfence.ErrTokenLimit) {
			t.Errorf("new names over the limit: %v", err)
		}
		harness.WantLedger(t, db, rows...)
	})
}

// manyGrants lets 16 callers issue tokens of some of five names, in random order of the names, with IssueMany and
// Issue. The callers use the stores in turn. It returns each name's grants.
func manyGrants(t *testing.T, stores ...*tokens.Store) map[string][]grant {
	t.Helper()
	all := []string{"books", "books/1", "books/2", "hats", "pens"}
	var clock atomic.Int64
	var mu sync.Mutex
	var callers sync.WaitGroup
	history := make(map[string][]grant)
	for g := range 16 {
		callers.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(g)))
			for i := range 25 {
				names := slices.Clone(all)
				random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
				names = names[:1+random.IntN(len(names))]
				store := stores[g%len(stores)]
				before := clock.Add(1)
				var issued []sqlfence.Token
				var err error
				if i%5 == 0 {
					names, issued = names[:1], make([]sqlfence.Token, 1)
					issued[0], err = store.Issue(t.Context(), names[0])
				} else {
					issued, err = store.IssueMany(t.Context(), names...)
				}
				after := clock.Add(1)
				if err != nil || len(issued) != len(names) {
					t.Errorf("IssueMany of %v = %v, %v", names, issued, err)
					return
				}
				mu.Lock()
				for i, token := range issued {
					if token.Name != names[i] {
						t.Errorf("IssueMany of %v = %v: in another order", names, issued)
					}
					history[token.Name] = append(history[token.Name], grant{before, after, token.Value})
				}
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	return history
}

// Concurrent callers have names in common. Each name's tokens are issued once, rise in real time, begin at 1, and none
// is skipped.
func TestTokensIssueManyKeepsRealTimeOrder(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		first := setupStore(t, db)
		second := harness.NewStore(t, b.Raw(t, dsn))
		for name, history := range manyGrants(t, first, second) {
			checkGrants(t, history)
			if got := history[len(history)-1].token; history[0].token != 1 || got != int64(len(history)) {
				t.Errorf("%s: %d tokens from %d to %d", name, len(history), history[0].token, got)
			}
		}
	})
}

func TestTokensIssueManyAtEveryIsolationLevel(t *testing.T) {
	harness.EachStoreSetting(t, func(t *testing.T, s harness.Setting) {
		if s.Level == sql.LevelDefault {
			t.Skip("there is one level")
		}
		dsn := s.AtLevel(t, s.DSN(t), s.Level)
		first := setupStore(t, s.Raw(t, dsn))
		second := harness.NewStore(t, s.Raw(t, dsn))
		for _, history := range manyGrants(t, first, second) {
			checkGrants(t, history)
		}
	})
}

// Concurrent callers name the same names in different orders. Each call sends its statements once, which shows that no
// deadlock has occurred.
func TestTokensIssueManyDoesNotDeadlock(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		dsn := b.DSN(t)
		setupStore(t, b.Raw(t, dsn))
		db, c := b.Counted(t, dsn, sqlfence.WithTable("books"))
		store := harness.NewStore(t, db)
		all := []string{"books", "books/1", "books/2", "hats", "pens"}
		issueMany(t, store, all...)
		c.Reset()
		ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
		defer cancel()
		var callers sync.WaitGroup
		for g := range 8 {
			callers.Go(func() {
				random := rand.New(rand.NewPCG(9, uint64(g)))
				for range 20 {
					names := slices.Clone(all)
					random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
					if _, err := store.IssueMany(ctx, names...); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		callers.Wait()
		if got, want := len(c.Texts()), 8*20*statements(b); got != want {
			t.Errorf("sent %d statements, want %d", got, want)
		}
		harness.WantLedger(t, db, "books=161", "books/1=161", "books/2=161", "hats=161", "pens=161")
	})
}

// statements returns how many statements a call sends: one, or two on MySQL, which needs a second one to read the
// tokens.
func statements(b harness.Base) int {
	if b.Returns() {
		return 1
	}
	return 2
}

// The number of a call's statements doesn't depend on the number of names.
func TestTokensIssueManyIsOneStatement(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		dsn := b.DSN(t)
		setupStore(t, b.Raw(t, dsn))
		db, c := b.Counted(t, dsn, sqlfence.WithTable("books"))
		store := harness.NewStore(t, db)
		names := []string{"pens", "books", "hats", "cups"}
		issueMany(t, store, names...)
		c.Reset()
		wantIssued(t, issueMany(t, store, names...), "pens=2", "books=2", "hats=2", "cups=2")
		if got := c.Texts(); len(got) != statements(b) {
			t.Errorf("sent %d statements, want %d:\n%s", len(got), statements(b), strings.Join(got, "\n"))
		}
		c.Reset()
		if _, err := store.IssueMany(t.Context(), "books", "books"); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Error(err)
		}
		if got := c.Calls(); len(got) > 0 {
			t.Errorf("sent %v for a name twice", got)
		}
	})
}

// IssueMany guards like Issue: the call waits for an open transaction that has written under one of the names, and
// makes the older tokens stale.
func TestTokensIssueManyWaitsForWriters(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.Ledger())
		sh.Reset(t, 8)
		store := harness.NewStore(t, sh.DB)
		write := func(token int64, r harness.Runner) error {
			_, err := harness.Forms[0].Run(harness.Holding(t, token), r, harness.RowWrites[0])
			return err
		}
		var issued []sqlfence.Token
		call := func() (err error) {
			issued, err = store.IssueMany(context.WithoutCancel(t.Context()), "pens", "books")
			return err
		}
		if s.Networked() {
			tx := harness.Begin(t.Context(), t, sh.DB, s.Level)
			if err := write(8, tx); err != nil {
				t.Fatal(err)
			}
			if err := sh.Behind(t, tx, call); err != nil {
				t.Fatal(err)
			}
		} else if err := call(); err != nil { // the file's only writer
			t.Fatal(err)
		}
		if len(issued) != 2 || issued[1].Value != 9 {
			t.Fatalf("issued %v, want 9 for books", issued)
		}
		if err := write(9, sh.DB); err != nil {
			t.Errorf("a write with the newest token: %v", err)
		}
		harness.WantStale(t, write(8, sh.DB), 8, 9)
	})
}

// If a call's context ends while it waits, no session of it waits on the server, and it takes no token later.
func TestTokensIssueManyCancelled(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		store := setupStore(t, db)
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := store.IssueMany(ended, "books", "pens"); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
		harness.WantLedger(t, db)
		if !b.Networked() {
			t.Skip("a SQLite connection waits for its busy_timeout")
		}
		issueMany(t, store, "books", "pens")
		release := hold(t, b, dsn)
		defer release()
		plain := b.Raw(t, dsn)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		failed := make(chan error, 1)
		go func() { _, err := store.IssueMany(ctx, "books", "pens"); failed <- err }()
		harness.Eventually(t, "the statement waits", func() bool { return b.Waiting(t, plain) == 1 })
		harness.GiveUp(t, plain, func() {
			cancel()
			if err := <-failed; err == nil {
				t.Error("it succeeded")
			}
		}, func() bool { return b.Waiting(t, plain) == 0 })
		release()
		wantIssued(t, issueMany(t, store, "books", "pens"), "books=2", "pens=2")
	})
}
