package drivers

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// Observe mode refuses nothing and tells what it would have refused; marks rise
// and never fall.

// A watched is a shop whose database is open in Observe mode or another, with
// what its observer was told and what reached the base driver.
type watched struct {
	*shop
	c      *counter
	events []sqlfence.Event
}

func watch(t *testing.T, b base, opts ...sqlfence.Option) *watched {
	t.Helper()
	w := &watched{shop: newShop(t, b)}
	opts = append(opts, sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { w.events = append(w.events, e) }))
	w.db, w.c = b.counted(t, w.source, opts...)
	return w
}

var observe = sqlfence.WithMode(sqlfence.Observe)

// clear forgets what was seen, and resets the books to mark.
func (w *watched) clear(t *testing.T, mark int64) {
	t.Helper()
	w.reset(t, mark)
	w.events = nil
	w.c.reset()
}

// wantTold fails the test unless the observer was told of one statement with the
// error, or of none if target is nil. A statement that can't be guarded is told
// when it is prepared and when it is executed.
func (w *watched) wantTold(t *testing.T, query string, target error) {
	t.Helper()
	if target == nil {
		if len(w.events) != 0 {
			t.Errorf("the observer was told %v", w.events)
		}
		return
	}
	if n := len(w.events); n != 1 && (n != 2 || !errors.Is(target, sqlfence.ErrUnguardable)) {
		t.Errorf("the observer was told %d events: %v", n, w.events)
	}
	for _, e := range w.events {
		if e.Kind != sqlfence.WouldRefuse || e.Query != query || e.Reason != "" {
			t.Errorf("event = %+v", e)
		}
		wantOnly(t, e.Err, target)
	}
}

func TestObserve(t *testing.T) {
	const returning = " RETURNING books.id"
	update := rowWrites[0].query
	upsert := rowWrites[2].query
	ways := []struct {
		name string
		ctx  func(t *testing.T) context.Context
	}{
		{"none", func(t *testing.T) context.Context { return t.Context() }},
		{"stale", func(t *testing.T) context.Context { return holding(t, 8) }},
		{"equal", func(t *testing.T) context.Context { return holding(t, 9) }},
		{"newer", func(t *testing.T) context.Context { return holding(t, 10) }},
	}
	for _, fence := range fences {
		t.Run(fence.name, func(t *testing.T) {
			eachBase(t, func(t *testing.T, b base) {
				s := watch(t, b, observe, books(fence.rule))
				rowFence := fence.name == "row fence"
				for _, tt := range []struct {
					write
					left string // at mark 9, by a token of 9 or less
				}{
					{write{"update", update, []any{30, 1}}, "1:30@9 2:10@9 3:10@9"},
					{write{"update returning", update + returning, []any{30, 1}}, "1:30@9 2:10@9 3:10@9"},
					{write{"upsert", upsert, []any{1, "i1", 30}}, "1:30@9 2:10@9 3:10@9"},
					{write{"delete", "DELETE FROM books WHERE id = $1", []any{1}}, "2:10@9 3:10@9"},
					{write{"delete returning", "DELETE FROM books WHERE id = $1" + returning, []any{1}}, "2:10@9 3:10@9"},
					{write{"without arguments", "UPDATE books SET price = 30 WHERE id = 1", nil}, "1:30@9 2:10@9 3:10@9"},
				} {
					for _, way := range ways {
						for name, run := range waysWithRow {
							if strings.Contains(name, "query") && !strings.Contains(tt.query, "RETURNING") {
								continue
							}
							s.clear(t, 9)
							if way.name == "newer" {
								s.raise(t, "books", 10)
							}
							if err := run(way.ctx(t), s.db, tt.query, tt.args...); err != nil {
								t.Errorf("%s by %s, token %s: %v", tt.name, name, way.name, err)
							}
							var target error
							switch way.name {
							case "none":
								target = sqlfence.ErrNoFence
							case "stale":
								target = sqlfence.ErrStale
							}
							s.wantTold(t, tt.query, target)
							left := tt.left
							if rowFence && way.name == "newer" {
								left = strings.Replace(left, "1:30@9", "1:30@10", 1)
							}
							if got := s.state(t, true); got != left {
								t.Errorf("%s by %s, token %s left %s, want %s", tt.name, name, way.name, got, left)
							}
							runs := slices.DeleteFunc(s.c.kinds(), func(k string) bool { return k == "prepare" })
							if target == nil && len(runs) != 1 {
								t.Errorf("%s by %s, token %s: sent %q", tt.name, name, way.name, s.c.texts())
							}
						}
					}
				}
			})
		})
	}
}

// waysWithRow are the ways of eachWay, and those for one row.
var waysWithRow = map[string]runFunc{
	"exec": ways["exec"], "query": ways["query"], "prepared exec": ways["prepared exec"], "prepared query": ways["prepared query"],
	"query row": func(ctx context.Context, r runner, query string, args ...any) error {
		var id int
		return r.QueryRowContext(ctx, query, args...).Scan(&id)
	},
}

// Other reasons for which Enforce refuses.
func TestObserveOtherReasons(t *testing.T) {
	key := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("id")}
	row := []sqlfence.Rule{sqlfence.RowFence("fence_token")}
	for _, tt := range []struct {
		name  string
		rules []sqlfence.Rule
		token sqlfence.Token
		query string
		want  error
		left  string
	}{
		{"unguardable", row, sqlfence.Token{Name: "books", Value: 10},
			"INSERT INTO books SELECT 7, 'i7', 70, 0, 3", sqlfence.ErrUnguardable, "1:10@9 2:10@9 3:10@9 7:70@3"},
		{"fence column written", row, sqlfence.Token{Name: "books", Value: 10},
			"UPDATE books SET fence_token = 3 WHERE id = 1", sqlfence.ErrUnguardable, "1:10@3 2:10@9 3:10@9"},
		{"unknown name", []sqlfence.Rule{sqlfence.Resource("new")}, sqlfence.Token{Name: "new", Value: 10},
			"UPDATE books SET price = 30 WHERE id = 1", sqlfence.ErrUnknownName, "1:30@9 2:10@9 3:10@9"},
		{"out of scope", key, sqlfence.Token{Name: "books/2", Value: 10},
			"UPDATE books SET price = 30", sqlfence.ErrOutOfScope, "1:30@9 2:30@10 3:30@9"},
		{"out of scope insert", key, sqlfence.Token{Name: "books/2", Value: 10},
			"INSERT INTO books (id, price) VALUES (7, 70)", sqlfence.ErrOutOfScope, "1:10@9 2:10@9 3:10@9 7:70@0"},
		{"invalid token", row, sqlfence.Token{Name: "books", Value: -1},
			"UPDATE books SET price = 30 WHERE id = 1", sqlfence.ErrNoFence, "1:30@9 2:10@9 3:10@9"},
		{"token over the limit", row, sqlfence.Token{Name: "books", Value: sqlfence.MaxToken + 1},
			"UPDATE books SET price = 30 WHERE id = 1", sqlfence.ErrTokenLimit, "1:30@9 2:10@9 3:10@9"},
		{"single use", append(row, sqlfence.SingleUse()), sqlfence.Token{Name: "books", Value: 9},
			"UPDATE books SET price = 30 WHERE id = 1", sqlfence.ErrStale, "1:30@9 2:10@9 3:10@9"},
		{"some rows stale", row, sqlfence.Token{Name: "books", Value: 8},
			"UPDATE books SET price = 30", sqlfence.ErrStale, "1:30@9 2:30@9 3:30@9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachBase(t, func(t *testing.T, b base) {
				s := watch(t, b, observe, books(tt.rules...))
				for name, run := range ways {
					s.clear(t, 9)
					if err := run(sqlfence.WithFence(t.Context(), tt.token), s.db, tt.query); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					s.wantTold(t, tt.query, tt.want)
					if got := s.state(t, true); got != tt.left {
						t.Errorf("%s left %s, want %s", name, got, tt.left)
					}
				}
			})
		})
	}
}

// An error that is the database's own isn't hidden, and not reported.
func TestObserveUnrelatedErrors(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		s := watch(t, b, observe, books(sqlfence.RowFence("fence_token")))
		for name, run := range ways {
			s.clear(t, 9)
			unchanged := s.unchanged(t)
			const query = "UPDATE books SET isbn = $1 WHERE id = $2 RETURNING id"
			errRaw, err := run(t.Context(), s.plain, query, "i2", 1), run(holding(t, 10), s.db, query, "i2", 1)
			if errRaw == nil || said(err) != said(errRaw) {
				t.Errorf("%s: %v, want %v", name, err, errRaw)
			}
			s.wantTold(t, query, nil)
			unchanged()
		}
	})
}

// A transaction lives on when a statement in it would have been refused, and
// keeps what was done before.
func TestObserveInTransaction(t *testing.T) {
	for _, fence := range fences {
		t.Run(fence.name, func(t *testing.T) {
			eachSetting(t, func(t *testing.T, st setting) {
				s := watch(t, st.base, observe, books(fence.rule))
				for name, run := range ways {
					for end, left := range map[string]string{"commit": "1:31@9 2:32@9 3:33@9 7:10@0", "rollback": "1:10@9 2:10@9 3:10@9"} {
						s.clear(t, 9)
						tx, err := s.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: st.level})
						if err != nil {
							t.Fatal(err)
						}
						for i, ctx := range []context.Context{holding(t, 8), t.Context(), holding(t, 9)} {
							if err := run(ctx, tx, setPrice+" RETURNING id", 31+i, 1+i); err != nil {
								t.Fatalf("%s: statement %d: %v", name, i, err)
							}
						}
						if _, err := tx.ExecContext(sqlfence.Bypass(t.Context(), "a test"), "INSERT INTO books (id) VALUES (7)"); err != nil {
							t.Fatal(err)
						}
						if end == "commit" {
							err = tx.Commit()
						} else {
							err = tx.Rollback()
						}
						if err != nil {
							t.Error(err)
						}
						if got := s.state(t, true); got != left {
							t.Errorf("%s, %s left %s, want %s", name, end, got, left)
						}
						var kinds []sqlfence.EventKind
						for _, e := range s.events {
							kinds = append(kinds, e.Kind)
						}
						if !slices.Equal(kinds, []sqlfence.EventKind{sqlfence.WouldRefuse, sqlfence.WouldRefuse, sqlfence.Bypassed}) {
							t.Errorf("%s: the observer was told %v", name, kinds)
						}
					}
				}
			})
		})
	}
}
