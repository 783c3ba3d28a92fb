package drivers

import (
	"context"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
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
	eachSetting(t, func(t *testing.T, s setting) {
		for _, fence := range fences {
			t.Run(fence.name, func(t *testing.T) {
				sh := s.shop(t, fence.rule)
				sh.reset(t, 1)
				unchanged := sh.unchanged(t)
				sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
					for _, w := range slices.Concat(rowWrites, freshInserts) {
						for _, c := range contexts {
							_, err := send(c.ctx(t.Context()), w)
							wantError(t, err, c.want)
							if t.Failed() {
								t.Fatalf("by %s with %s", w.name, c.name)
							}
						}
					}
				})
				unchanged()
			})
		}
	})
}

// What is refused for want of a token isn't sent.
func TestG5SendsNothing(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{base: b}.shop(t)
		db, count := b.counted(t, sh.source, books())
		for _, f := range forms {
			for _, w := range rowWrites {
				_, err := f.run(t.Context(), db, w)
				wantError(t, err, sqlfence.ErrNoFence)
			}
		}
		for _, c := range count.calls() {
			if c.kind != "prepare" { // it is only for its execution that a token is needed
				t.Errorf("reached the database: %s %s", c.kind, c.query)
			}
		}
	})
}

func TestG5OptionalPassesWithoutToken(t *testing.T) {
	for _, fence := range fences {
		t.Run(fence.name, func(t *testing.T) {
			eachSetting(t, func(t *testing.T, s setting) {
				sh := s.shop(t, fence.rule, sqlfence.Optional())
				sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
					for _, w := range rowWrites {
						sh.reset(t, 9)
						if n, err := send(t.Context(), w); n != 1 || err != nil {
							t.Errorf("%s: %d rows, %v", w.name, n, err)
						}
						sh.reset(t, 9)
						_, err := send(holding(t, 8), w)
						wantStale(t, err, 8, 9)
						_, err = send(holding(t, 0), w)
						wantError(t, err, sqlfence.ErrNoFence)
					}
				})
			})
		})
	}
}

func TestG5BypassIsSeenByTheObserver(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{base: b}.shop(t)
		var seen []sqlfence.Event
		db := b.fenced(t, sh.source, books(sqlfence.RowFence("fence_token")),
			sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { seen = append(seen, e) }))
		for _, f := range forms {
			for _, w := range rowWrites {
				sh.reset(t, 9)
				seen = nil
				if n, err := f.run(sqlfence.Bypass(t.Context(), "repair"), db, w); n != 1 || err != nil {
					t.Errorf("%s by %s: %d rows, %v", w.name, f.name, n, err)
				}
				if !slices.ContainsFunc(seen, func(e sqlfence.Event) bool {
					return e.Kind == sqlfence.Bypassed && e.Reason == "repair" && e.Query != ""
				}) {
					t.Errorf("%s by %s: the observer saw %v", w.name, f.name, seen)
				}
			}
		}
	})
}

// In Observe mode what would be refused is done, and told.
func TestG5ObserveRefusesNothing(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t)
		var kinds []sqlfence.EventKind
		sh.db = s.fenced(t, sh.source, books(sqlfence.RowFence("fence_token")), sqlfence.WithMode(sqlfence.Observe),
			sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { kinds = append(kinds, e.Kind) }))
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, w := range rowWrites {
				for name, ctx := range map[string]context.Context{"none": t.Context(), "stale": holding(t, 8)} {
					sh.reset(t, 9)
					kinds = nil
					if n, err := send(ctx, w); n != 1 || err != nil || !slices.Contains(kinds, sqlfence.WouldRefuse) {
						t.Errorf("%s with token %s: %d rows, %v; the observer saw %v", w.name, name, n, err, kinds)
					}
					if got := sh.state(t, true); got != "1:30@9 2:10@9 3:10@9" && w.name != "delete" {
						t.Errorf("%s with token %s left %s", w.name, name, got)
					}
				}
			}
		})
	})
}
