package tokens_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// Each call gives an event, with the number of calls that shared its statement.
func TestTokensObserver(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		dsn := b.DSN(t)
		var mu sync.Mutex
		var seen []tokens.Event
		quiet := tokens.WithLogger(slog.New(slog.DiscardHandler)) // without warnings about tokens near the limit
		store := harness.NewStore(t, b.Raw(t, dsn), quiet, tokens.WithObserver(func(_ context.Context, e tokens.Event) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, e)
		}))
		if err := store.Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		first, err := store.Issue(t.Context(), "books")
		if err != nil {
			t.Fatal(err)
		}
		several, err := store.IssueMany(t.Context(), "pens", "books")
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Adopt(t.Context(), sqlfence.Token{Name: "worn", Value: sqlfence.MaxToken}); err != nil {
			t.Fatal(err)
		}
		_, limit := store.Issue(t.Context(), "worn")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, late := store.Issue(ended, "books")
		if _, err := store.Issue(t.Context(), ""); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Error(err)
		}
		for i, want := range []tokens.Event{
			{Names: []string{"books"}, Tokens: []sqlfence.Token{first}, Calls: 1},
			{Names: []string{"pens", "books"}, Tokens: several, Calls: 1},
			{Names: []string{"worn"}, Calls: 1, Err: limit},
			{Names: []string{"books"}, Err: late},
		} {
			if i >= len(seen) {
				t.Fatalf("%d events", len(seen))
			}
			got := seen[i]
			if !slices.Equal(got.Names, want.Names) || !slices.Equal(got.Tokens, want.Tokens) || got.Calls != want.Calls ||
				!errors.Is(got.Err, want.Err) || (got.Err == nil) != (want.Err == nil) || got.Duration < 0 {
				t.Errorf("event %d: %+v, want %+v", i, got, want)
			}
		}

		seen = nil
		release := hold(t, b, dsn)
		defer release()
		var all sync.WaitGroup
		const calls = 5
		for range calls {
			all.Go(func() {
				if _, err := store.Issue(t.Context(), "books"); err != nil {
					t.Error(err)
				}
			})
		}
		for waiting() < calls {
			runtime.Gosched()
		}
		release()
		all.Wait()
		shared := 0
		for _, e := range seen {
			shared = max(shared, e.Calls)
		}
		if len(seen) != calls || shared < 2 || shared > calls {
			t.Errorf("%+v: want %d events, some of a statement that calls share", seen, calls)
		}
	})
}
