package observe_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// In Observe mode no write is refused, and the observer is told of each write that Enforce mode would refuse. Stored
// tokens rise, and they never fall.

func TestObserve(t *testing.T) {
	const returning = " RETURNING books.id"
	update := harness.RowWrites[0].Query
	upsert := harness.RowWrites[2].Query
	ways := []struct {
		name string
		ctx  func(t *testing.T) context.Context
	}{
		{"none", func(t *testing.T) context.Context { return t.Context() }},
		{"stale", func(t *testing.T) context.Context { return harness.Holding(t, 8) }},
		{"equal", func(t *testing.T) context.Context { return harness.Holding(t, 9) }},
		{"newer", func(t *testing.T) context.Context { return harness.Holding(t, 10) }},
	}
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				s := harness.Watch(t, b, harness.ObserveMode, harness.Books(fence.Rule))
				rowFence := fence.Name == "row fence"
				for _, tt := range []struct {
					harness.Write
					left string // the rows, from the stored token 9, after a token of 9 or less
				}{
					{harness.Write{Name: "update", Query: update, Args: []any{30, 1}}, "1:30@9 2:10@9 3:10@9"},
					{harness.Write{Name: "update returning", Query: update + returning, Args: []any{30, 1}}, "1:30@9 2:10@9 3:10@9"},
					{harness.Write{Name: "upsert", Query: upsert, Args: []any{1, "i1", 30}}, "1:30@9 2:10@9 3:10@9"},
					{harness.Write{Name: "delete", Query: "DELETE FROM books WHERE id = $1", Args: []any{1}}, "2:10@9 3:10@9"},
					{harness.Write{Name: "delete returning", Query: "DELETE FROM books WHERE id = $1" + returning, Args: []any{1}}, "2:10@9 3:10@9"},
					{harness.Write{Name: "without arguments", Query: "UPDATE books SET price = 30 WHERE id = 1", Args: nil}, "1:30@9 2:10@9 3:10@9"},
				} {
					if !b.Returns() && strings.Contains(tt.Query, "RETURNING") {
						continue
					}
					for _, way := range ways {
						for name, run := range waysWithRow {
							if strings.Contains(name, "query") && !strings.Contains(tt.Query, "RETURNING") {
								continue
							}
							s.Clear(t, 9)
							if way.name == "newer" {
								s.Raise(t, "books", 10)
							}
							if err := run(way.ctx(t), s.DB, tt.Query, tt.Args...); err != nil {
								t.Errorf("%s by %s, token %s: %v", tt.Name, name, way.name, err)
							}
							var target error
							switch way.name {
							case "none":
								target = sqlfence.ErrNoFence
							case "stale":
								target = sqlfence.ErrStale
							}
							s.WantEvents(t, s.Text(t, tt.Query), target)
							left := tt.left
							if rowFence && way.name == "newer" {
								left = strings.Replace(left, "1:30@9", "1:30@10", 1)
							}
							if got := s.State(t, true); got != left {
								t.Errorf("%s by %s, token %s left %s, want %s", tt.Name, name, way.name, got, left)
							}
							runs := slices.DeleteFunc(s.Counter.Kinds(), func(k string) bool { return k == "prepare" })
							want := 1
							if b.Dialect == sqlfence.MySQL && len(tt.Args) > 0 && name == "exec" {
								want = 2 // mysql answers the first with driver.ErrSkip
							}
							if target == nil && len(runs) != want {
								t.Errorf("%s by %s, token %s: sent %q", tt.Name, name, way.name, s.Counter.Texts())
							}
						}
					}
				}
			})
		})
	}
}

// waysWithRow are the ways of harness.EachWay, and QueryRow.
var waysWithRow = map[string]harness.RunFunc{
	"exec": harness.Ways["exec"], "query": harness.Ways["query"], "prepared exec": harness.Ways["prepared exec"], "prepared query": harness.Ways["prepared query"],
	"query row": func(ctx context.Context, r harness.Runner, query string, args ...any) error {
		var id int
		return r.QueryRowContext(ctx, query, args...).Scan(&id)
	},
}

// Observe mode reports the writes that Enforce mode refuses for other reasons than a stale token.
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
			"UPDATE books SET price = 30", sqlfence.ErrOutOfScope, "1:30@9 2:30@9 3:30@9"},
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
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				s := harness.Watch(t, b, harness.ObserveMode, harness.Books(tt.rules...))
				for name, run := range harness.Ways {
					s.Clear(t, 9)
					if err := run(sqlfence.WithFence(t.Context(), tt.token), s.DB, tt.query); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					s.WantEvents(t, tt.query, tt.want)
					if got := s.State(t, true); got != tt.left {
						t.Errorf("%s left %s, want %s", name, got, tt.left)
					}
				}
			})
		})
	}
}

// An error that has nothing to do with the guard is returned, and isn't reported.
func TestObserveUnrelatedErrors(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.Watch(t, b, harness.ObserveMode, harness.Books(sqlfence.RowFence("fence_token")))
		for name, run := range harness.Ways {
			s.Clear(t, 9)
			unchanged := s.Unchanged(t)
			const query = "UPDATE books SET isbn = $1 WHERE id = $2 RETURNING id"
			errRaw, err := run(t.Context(), s.Plain, query, "i2", 1), run(harness.Holding(t, 10), s.DB, query, "i2", 1)
			if errRaw == nil || harness.ErrorText(err) != harness.ErrorText(errRaw) {
				t.Errorf("%s: %v, want %v", name, err, errRaw)
			}
			s.WantEvents(t, query, nil)
			unchanged()
		}
	})
}

// If Enforce mode would refuse a statement in a transaction, in Observe mode the transaction stays open with its
// earlier writes.
func TestObserveInTransaction(t *testing.T) {
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			harness.EachSetting(t, func(t *testing.T, st harness.Setting) {
				s := harness.Watch(t, st.Base, harness.ObserveMode, harness.Books(fence.Rule))
				for name, run := range harness.Ways {
					for end, left := range map[string]string{"commit": "1:31@9 2:32@9 3:33@9 7:10@0", "rollback": "1:10@9 2:10@9 3:10@9"} {
						s.Clear(t, 9)
						tx, err := s.DB.BeginTx(t.Context(), &sql.TxOptions{Isolation: st.Level})
						if err != nil {
							t.Fatal(err)
						}
						for i, ctx := range []context.Context{harness.Holding(t, 8), t.Context(), harness.Holding(t, 9)} {
							if err := run(ctx, tx, harness.SetPrice+" RETURNING id", 31+i, 1+i); err != nil {
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
						if got := s.State(t, true); got != left {
							t.Errorf("%s, %s left %s, want %s", name, end, got, left)
						}
						var kinds []sqlfence.EventKind
						for _, e := range s.Events {
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
