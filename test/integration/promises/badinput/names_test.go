package badinput_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// hostileNames are names of resources, and keys of rows, that have a meaning elsewhere: in SQL, for a driver, or in the
// guard's messages.
var hostileNames = []string{
	`'; DROP TABLE books; --`, `'`, `''`, `\'`, `\`, `\\`, `a\' OR 1=1 --`, `"`, "`", `]`,
	`$1`, `$2::bigint`, `?`, `?1`, `:name`, `@name`, `%s%n`, `{}`, `$$`, `$x$`, `E'\\'`,
	`--`, `/*`, `*/`, `;`, `(`, `)`, "a\nb", "a\r\nb", "\t", " ", `it's 42`,
	`sqlfence:stale:0:1`, `sqlfence:unknown:0:0`, `sqlfence:scope:0:x`, `x" sqlfence:stale:0:1`,
	`U&'\0041'`, `NULL`, `ünïcödé 本 💥`, "\uFEFF", "\u202e", strings.Repeat("é", 240),
}

// literallyAndByArgument is a write without and with arguments. Without arguments the guard's values are in the text;
// with arguments they are arguments, too.
var literallyAndByArgument = map[string][]any{
	"UPDATE books SET price = 30 WHERE id = 1": nil,
	harness.SetPrice: {30, 1},
}

func TestBadResourceNames(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b)
		// The names of the two resources differ by little, so a mixed-up name would have the other one's token.
		s.Raise(t, "1", 99)
		s.Raise(t, "x", 99)
		ways := slices.Sorted(maps.Keys(harness.Ways))
		for i, name := range hostileNames {
			t.Run(name, func(t *testing.T) {
				for _, fence := range harness.Fences {
					db := b.Fenced(t, s.Source, harness.Books(fence.Rule, sqlfence.Resource(name)))
					held := func(value int64) context.Context {
						return sqlfence.WithFence(t.Context(), sqlfence.Token{Name: name, Value: value})
					}
					for query, args := range literallyAndByArgument {
						for way, run := range harness.Ways {
							if testing.Short() && way != ways[i%len(ways)] { // each name in one way
								continue
							}
							s.Reset(t, 0)
							s.Exec(t, "DELETE FROM fencing_tokens WHERE name = $1", name)
							if fence.Name == "ledger" {
								err := run(held(8), db, query, args...)
								harness.WantError(t, err, sqlfence.ErrUnknownName)
								s.Raise(t, name, 8)
							}
							if err := run(held(8), db, query, args...); err != nil {
								t.Errorf("%s %s, current: %v", fence.Name, way, err)
							}
							s.Exec(t, "UPDATE books SET fence_token = 9, price = 10 WHERE id = 1")
							s.Raise(t, name, 9)
							unchanged := s.Unchanged(t)
							err := run(held(8), db, query, args...)
							var stale *sqlfence.StaleError
							if !errors.As(err, &stale) || stale.Token != (sqlfence.Token{Name: name, Value: 8}) || stale.Current != 9 {
								t.Errorf("%s %s, stale: %v", fence.Name, way, err)
							}
							unchanged()
						}
					}
				}
			})
		}
	})
}

// A server may read backslashes in strings as escapes. Names in a guard's text must have the same meaning on such a
// server.
func TestBadResourceNamesWithEscapes(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("only PostgreSQL has the setting")
		}
		s := harness.NewShop(t, b)
		source := s.Source + "&standard_conforming_strings=off"
		for _, name := range hostileNames {
			s.Reset(t, 9)
			s.Raise(t, name, 9)
			db := b.Fenced(t, source, harness.Books(sqlfence.Resource(name)))
			for value, target := range map[int64]error{8: sqlfence.ErrStale, 9: nil} {
				ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: name, Value: value})
				_, err := db.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1")
				if !errors.Is(err, target) {
					t.Errorf("%q, token %d: %v, want %v", name, value, err, target)
				}
			}
			if got := s.State(t, true); got != "1:30@9 2:10@9 3:10@9" {
				t.Errorf("%q left %s", name, got)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A row's key may be data of the application's users.
func TestBadKeys(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b)
		if b.Dialect == sqlfence.MySQL { // MySQL's default charset may be latin1, with shorter keys
			s.Exec(t, "ALTER TABLE books MODIFY isbn varchar(700) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
		}
		db := b.Fenced(t, s.Source, harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Key("isbn")))
		held := func(key string, value int64) context.Context {
			return sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/other", Value: 1}, sqlfence.Token{Name: "books/" + key, Value: value})
		}
		for _, key := range hostileNames {
			t.Run(key, func(t *testing.T) {
				for query, args := range literallyAndByArgument {
					for way, run := range harness.Ways {
						s.Reset(t, 9)
						s.Exec(t, "UPDATE books SET isbn = $1 WHERE id = 1", key)
						unchanged := s.Unchanged(t)
						err := run(held(key, 8), db, query, args...)
						var stale *sqlfence.StaleError
						if !errors.As(err, &stale) || stale.Token.Name != "books/"+key || stale.Current != 9 {
							t.Errorf("%s, stale: %v", way, err)
						}
						harness.WantError(t, run(held(key+"x", 10), db, query, args...), sqlfence.ErrOutOfScope)
						unchanged()
						if err := run(held(key, 10), db, query, args...); err != nil || !strings.HasPrefix(s.State(t, true), "1:30@10 ") {
							t.Errorf("%s, current: %v, books are %s", way, err, s.State(t, true))
						}
					}
				}
				insert := "INSERT INTO books (id, isbn) VALUES ($1, $2)"
				s.Exec(t, "DELETE FROM books")
				if strings.TrimSpace(key) != key {
					// A column of some types stores this key as another text.
					_, err := db.ExecContext(held(key, 10), insert, 7, key)
					harness.WantError(t, err, sqlfence.ErrUnguardable)
					return
				}
				_, err := db.ExecContext(held(key+"x", 10), insert, 7, key)
				harness.WantError(t, err, sqlfence.ErrOutOfScope)
				if _, err := db.ExecContext(held(key, 10), insert, 7, key); err != nil || s.State(t, true) != "7:10@10" {
					t.Errorf("insert: %v, books are %s", err, s.State(t, true))
				}
			})
		}
	})
}

// If a row of an UPDATE has a key that no token covers, the error quotes this key unchanged.
func TestBadKeyIsTold(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b)
		db := b.Fenced(t, s.Source, harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Key("isbn")))
		ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/other", Value: 1})
		for _, key := range []string{"42", "a:b", `\`, "sqlfence:stale:0:1", "ünï", `say "x"`} {
			s.Reset(t, 0)
			s.Exec(t, "UPDATE books SET isbn = $1 WHERE id = 1", key)
			_, err := db.ExecContext(ctx, harness.SetPrice, 30, 1)
			harness.WantError(t, err, sqlfence.ErrOutOfScope)
			if err != nil && !strings.Contains(err.Error(), strconv.Quote("books/"+key)) {
				t.Errorf("key %q: %v", key, err)
			}
		}
	})
}
