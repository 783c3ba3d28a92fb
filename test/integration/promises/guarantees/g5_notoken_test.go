package guarantees_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A write on a registered table without a token is refused, unless the table is
// Optional, the mode is Observe, or the context carries Bypass with a reason.

func TestG5NoTokenNoWrite(t *testing.T) {
	other := sqlfence.Token{Name: "pens", Value: 100}
	contexts := []struct {
		name string
		ctx  func(context.Context) context.Context
		want error
	}{
		{"no token", func(ctx context.Context) context.Context { return ctx }, sqlfence.ErrNoFence},
		{"another's token", func(ctx context.Context) context.Context { return sqlfence.WithFence(ctx, other) }, sqlfence.ErrNoFence},
		{"value 0", func(ctx context.Context) context.Context {
			return sqlfence.WithFence(ctx, sqlfence.Token{Name: "books"})
		}, sqlfence.ErrNoFence},
		{"negative value", func(ctx context.Context) context.Context {
			return sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: -1})
		}, sqlfence.ErrNoFence},
		{"value over the limit", func(ctx context.Context) context.Context {
			return sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: sqlfence.MaxToken + 1})
		}, sqlfence.ErrTokenLimit},
		{"valid, then replaced by none", func(ctx context.Context) context.Context {
			return sqlfence.WithFence(sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: 9}), sqlfence.Token{Name: "books"})
		}, sqlfence.ErrNoFence},
		{"bypass without a reason", func(ctx context.Context) context.Context { return sqlfence.Bypass(ctx, "") }, sqlfence.ErrNoFence},
	}
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		for _, fence := range harness.Fences {
			t.Run(fence.Name, func(t *testing.T) {
				sh := s.Shop(t, fence.Rule)
				sh.Reset(t, 1)
				unchanged := sh.Unchanged(t)
				sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
					for _, w := range s.Guarded(fence.Name, harness.RowWrites, harness.FreshInserts) {
						for _, c := range contexts {
							_, err := send(c.ctx(t.Context()), w)
							harness.WantError(t, err, c.want)
							if t.Failed() {
								t.Fatalf("by %s with %s", w.Name, c.name)
							}
						}
					}
				})
				unchanged()
			})
		}
	})
}

// A write that is refused because it has no token isn't sent.
func TestG5SendsNothing(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.Setting{Base: b}.Shop(t)
		db, count := b.Counted(t, sh.Source, harness.Books())
		for _, f := range b.Forms() {
			for _, w := range harness.RowWrites {
				_, err := f.Run(t.Context(), db, w)
				harness.WantError(t, err, sqlfence.ErrNoFence)
			}
		}
		for _, c := range count.Calls() {
			// Only executing needs a token. Preparing first looks for the function that the statement calls.
			if c.Kind != "prepare" && !strings.Contains(c.Query, ":server:") {
				t.Errorf("reached the database: %s %s", c.Kind, c.Query)
			}
		}
	})
}

func TestG5OptionalPassesWithoutToken(t *testing.T) {
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
				sh := s.Shop(t, fence.Rule, sqlfence.Optional())
				sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
					for _, w := range harness.RowWrites {
						sh.Reset(t, 9)
						if n, err := send(t.Context(), w); n != s.Updated(w) || err != nil {
							t.Errorf("%s: %d rows, %v", w.Name, n, err)
						}
						sh.Reset(t, 9)
						_, err := send(harness.Holding(t, 8), w)
						harness.WantStale(t, err, 8, 9)
						_, err = send(harness.Holding(t, 0), w)
						harness.WantError(t, err, sqlfence.ErrNoFence)
					}
				})
			})
		})
	}
}

func TestG5BypassIsSeenByTheObserver(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.Setting{Base: b}.Shop(t)
		var seen []sqlfence.Event
		db := b.Fenced(t, sh.Source, harness.Books(sqlfence.RowFence("fence_token")),
			sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { seen = append(seen, e) }))
		for _, f := range b.Forms() {
			for _, w := range harness.RowWrites {
				sh.Reset(t, 9)
				seen = nil
				if n, err := f.Run(sqlfence.Bypass(t.Context(), "repair"), db, w); n != b.Updated(w) || err != nil {
					t.Errorf("%s by %s: %d rows, %v", w.Name, f.Name, n, err)
				}
				if !slices.ContainsFunc(seen, func(e sqlfence.Event) bool {
					return e.Kind == sqlfence.Bypassed && e.Reason == "repair" && e.Query != ""
				}) {
					t.Errorf("%s by %s: the observer saw %v", w.Name, f.Name, seen)
				}
			}
		}
	})
}

// In Observe mode a write that Enforce mode would refuse succeeds, and the observer is told of it.
func TestG5ObserveRefusesNothing(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t)
		var kinds []sqlfence.EventKind
		sh.DB = s.Fenced(t, sh.Source, harness.Books(sqlfence.RowFence("fence_token")), sqlfence.WithMode(sqlfence.Observe),
			sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { kinds = append(kinds, e.Kind) }))
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for _, w := range harness.RowWrites {
				for name, ctx := range map[string]context.Context{"none": t.Context(), "stale": harness.Holding(t, 8)} {
					sh.Reset(t, 9)
					kinds = nil
					if n, err := send(ctx, w); n != s.Updated(w) || err != nil || !slices.Contains(kinds, sqlfence.WouldRefuse) {
						t.Errorf("%s with token %s: %d rows, %v; the observer saw %v", w.Name, name, n, err, kinds)
					}
					if got := sh.State(t, true); got != "1:30@9 2:10@9 3:10@9" && w.Name != "delete" {
						t.Errorf("%s with token %s left %s", w.Name, name, got)
					}
				}
			}
		})
	})
}
