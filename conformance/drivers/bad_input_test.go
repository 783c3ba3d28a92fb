package drivers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// Bad input is met by a clear, typed error before it reaches the database, or
// has the effect that it has without sqlfence. It never changes anything else.

// newShop is a shop at the database's own isolation level.
func newShop(t testing.TB, b base, rules ...sqlfence.Rule) *shop {
	t.Helper()
	return setting{b, sql.LevelDefault}.shop(t, rules...)
}

const setPrice = "UPDATE books SET price = $1 WHERE id = $2"

// eachWay runs test for the ways to run a statement: Exec, Query, and both of
// them prepared.
func eachWay(t *testing.T, test func(t *testing.T, run runFunc)) {
	t.Helper()
	for name, run := range ways {
		t.Run(name, func(t *testing.T) { test(t, run) })
	}
}

type runFunc func(ctx context.Context, r runner, query string, args ...any) error

var ways = map[string]runFunc{
	"exec": func(ctx context.Context, r runner, query string, args ...any) error {
		_, err := r.ExecContext(ctx, query, args...)
		return err
	},
	"query": func(ctx context.Context, r runner, query string, args ...any) error {
		_, err := returned(r.QueryContext(ctx, query, args...))
		return err
	},
	"prepared exec": func(ctx context.Context, r runner, query string, args ...any) error {
		_, err := prepared(ctx, r, query, func(s *sql.Stmt) (int64, error) { return affected(s.ExecContext(ctx, args...)) })
		return err
	},
	"prepared query": func(ctx context.Context, r runner, query string, args ...any) error {
		_, err := prepared(ctx, r, query, func(s *sql.Stmt) (int64, error) { return returned(s.QueryContext(ctx, args...)) })
		return err
	},
}

func TestBadTokens(t *testing.T) {
	type bad struct {
		name  string
		token sqlfence.Token
		want  error
	}
	values := []bad{
		{"zero", sqlfence.Token{Name: "books"}, sqlfence.ErrNoFence},
		{"negative", sqlfence.Token{Name: "books", Value: -1}, sqlfence.ErrNoFence},
		{"lowest", sqlfence.Token{Name: "books", Value: -1 << 63}, sqlfence.ErrNoFence},
		{"over the limit", sqlfence.Token{Name: "books", Value: sqlfence.MaxToken + 1}, sqlfence.ErrTokenLimit},
		{"highest", sqlfence.Token{Name: "books", Value: 1<<63 - 1}, sqlfence.ErrTokenLimit},
		{"empty name", sqlfence.Token{Value: 7}, sqlfence.ErrNoFence},
	}
	names := []bad{
		{"a megabyte of name", sqlfence.Token{Name: "books/" + strings.Repeat("n", 1<<20), Value: 7}, sqlfence.ErrNoFence},
		{"NUL", sqlfence.Token{Name: "books/1\x00", Value: 7}, sqlfence.ErrNoFence},
		{"invalid UTF-8", sqlfence.Token{Name: "books/\xff", Value: 7}, sqlfence.ErrNoFence},
		{"invalid besides a valid one", sqlfence.Token{Name: "books/2", Value: -7}, sqlfence.ErrNoFence},
	}
	eachBase(t, func(t *testing.T, b base) {
		s := newShop(t, b)
		s.reset(t, 5)
		check := func(kind string, cases []bad, base context.Context, rules ...sqlfence.Rule) {
			db, c := b.counted(t, s.source, books(rules...))
			for _, tt := range cases {
				t.Run(kind+"/"+tt.name, func(t *testing.T) {
					eachWay(t, func(t *testing.T, run runFunc) {
						defer s.unchanged(t)()
						c.reset()
						err := run(sqlfence.WithFence(base, tt.token), db, setPrice, 30, 1)
						wantError(t, err, tt.want)
						if len(err.Error()) > 1000 {
							t.Errorf("the error has %d bytes", len(err.Error()))
						}
						if kinds := c.kinds(); slices.ContainsFunc(kinds, func(k string) bool { return k != "prepare" }) {
							t.Errorf("the base driver was called: %q", kinds)
						}
					})
				})
			}
		}
		check("row fence", values, t.Context(), sqlfence.RowFence("fence_token"))
		check("ledger", values, t.Context(), sqlfence.Ledger())
		check("keyed", names, sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/1", Value: 7}),
			sqlfence.RowFence("fence_token"), sqlfence.Key("id"))
	})
}

// Only sqlfence writes the fence column: a statement that does is refused, with
// the place where it does.
func TestBadFenceColumnWritten(t *testing.T) {
	// | stands before the place.
	queries := []string{
		"UPDATE books SET |fence_token = 1",
		"UPDATE books SET price = 1, |fence_token = 1 WHERE id = 1",
		"UPDATE books SET |FENCE_Token=NULL",
		`UPDATE books SET |"fence_token" = fence_token`,
		"UPDATE books SET /* price */ |fence_token = 1",
		"UPDATE books SET |(price, fence_token) = (1, 2)",
		"INSERT INTO books (id, |fence_token) VALUES (9, 1)",
		"INSERT INTO books (|FENCE_TOKEN, id) SELECT 1, 9",
		"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET price = 3, |fence_token = excluded.fence_token",
	}
	eachBase(t, func(t *testing.T, b base) {
		s := newShop(t, b, sqlfence.RowFence("fence_token"))
		s.reset(t, 5)
		all := slices.Clone(queries)
		if b.dialect == sqlfence.SQLite {
			all = append(all, "UPDATE books SET |`fence_token` = 1", "UPDATE books SET |[fence_token] = 1",
				`UPDATE books SET |"FENCE_token" = 1`, "UPDATE books SET |'fence_token' = 1")
		} else {
			all = append(all, `UPDATE books SET |U&"fence\005ftoken" = 1`, "UPDATE ONLY books b SET |fence_token = 1",
				"UPDATE books SET |fence_token[1] = 1", "UPDATE books SET |fence_token.x = 1")
		}
		for _, query := range all {
			t.Run(query, func(t *testing.T) {
				defer s.unchanged(t)()
				offset := strings.Index(query, "|")
				_, err := s.db.ExecContext(holding(t, 7), strings.Replace(query, "|", "", 1))
				var unguardable *sqlfence.UnguardableError
				if !errors.As(err, &unguardable) || !errors.Is(err, sqlfence.ErrUnguardable) {
					t.Fatalf("err = %v, want ErrUnguardable", err)
				}
				if unguardable.Table != "books" || unguardable.Offset != offset || !strings.Contains(unguardable.Reason, "fence column") {
					t.Errorf("%v: want table books, offset %d", err, offset)
				}
			})
		}
		// What looks like the column and is none fails in the database.
		for _, query := range []string{"UPDATE books SET books.fence_token = 1", "UPDATE books SET fence_token"} {
			defer s.unchanged(t)()
			if _, err := s.db.ExecContext(holding(t, 7), query); err == nil {
				t.Errorf("%s succeeded", query)
			}
		}
	})
}

// A statement of megabytes is guarded like any other.
func TestBadHugeStatement(t *testing.T) {
	var rows strings.Builder
	const count = 2_000
	for i := range count {
		fmt.Fprintf(&rows, ", (%d, '%s')", 1000+i, fmt.Sprintf("%02700d", i))
	}
	values := rows.String()[2:]
	if len(values) < 5<<20 {
		t.Fatalf("only %d bytes", len(values))
	}
	eachBase(t, func(t *testing.T, b base) {
		for _, fence := range fences {
			t.Run(fence.name, func(t *testing.T) {
				s := newShop(t, b, fence.rule)
				s.reset(t, 9)
				insert := "INSERT INTO books (id, isbn) VALUES " + values
				_, err := s.db.ExecContext(t.Context(), insert)
				wantError(t, err, sqlfence.ErrNoFence)
				// None of the rows is written if one of them is stale.
				upsert := insert + ", (1, 'new') ON CONFLICT (id) DO UPDATE SET isbn = excluded.isbn"
				_, err = s.db.ExecContext(holding(t, 8), upsert)
				wantStale(t, err, 8, 9)
				if n := countBooks(t, s.plain); n != 3 {
					t.Fatalf("%d books, want 3", n)
				}
				if _, err := s.db.ExecContext(holding(t, 9), insert); err != nil {
					t.Fatalf("%.200s", err.Error())
				}
				if n := countBooks(t, s.plain); n != 3+count {
					t.Errorf("%d books, want %d", n, 3+count)
				}
				marked := 3
				if fence.name == "row fence" {
					marked += count
				}
				var n int
				if err := s.plain.QueryRow("SELECT count(*) FROM books WHERE fence_token = 9").Scan(&n); err != nil || n != marked {
					t.Errorf("%d books carry the mark, %v; want %d", n, err, marked)
				}
				s.exec(t, "CREATE TABLE notes (id integer, isbn text)")
				if n, err := affected(s.db.ExecContext(t.Context(), "INSERT INTO notes (id, isbn) VALUES "+values)); err != nil || n != count {
					t.Errorf("into another table: %d, %.200v", n, err)
				}
			})
		}
	})
}

// What can't be read, and mentions a registered table, is refused; what doesn't
// mention one is the base driver's business.
func TestBadText(t *testing.T) {
	texts := []string{
		"DELETE FROM %s WHERE isbn = '\xff'",
		"DELETE FROM %s WHERE isbn = 'open",
		`DELETE FROM %s WHERE "open = 1`,
		"DELETE FROM %s\x00 WHERE 1 = 0",
		"DELETE FROM pens\x00 %s",
		"DELETE FROM %s WHERE (id = 1",
		"DELETE FROM %s WHERE id = 1)",
		"DELETE FROM %s WHERE id = 1) OR (1 = 1",
		"DELETE FROM pens; DELETE FROM %s",
		"\xff DELETE FROM %s",
	}
	eachBase(t, func(t *testing.T, b base) {
		s := newShop(t, b, sqlfence.RowFence("fence_token"))
		s.exec(t, "CREATE TABLE others (id integer, isbn text)")
		all := slices.Clone(texts)
		if b.dialect == sqlfence.Postgres {
			all = append(all, "DELETE FROM %s WHERE isbn = $x$ open", "DELETE FROM %s WHERE isbn = E'open\\'",
				"DELETE FROM %s /* open", "DELETE FROM pens /* %s", "DELETE FROM %s /* open /* nested */", `DELETE FROM %s WHERE isbn = 'a\' OR 1 = 1 --'`)
		} else {
			all = append(all, "DELETE FROM %s WHERE [open = 1", "DELETE FROM %s WHERE `open = 1")
		}
		for _, format := range all {
			t.Run(format, func(t *testing.T) {
				eachWay(t, func(t *testing.T, run runFunc) {
					s.reset(t, 5)
					s.exec(t, "INSERT INTO pens (id) VALUES (1)")
					defer s.unchanged(t)()
					err := run(holding(t, 7), s.db, fmt.Sprintf(format, "books"))
					wantError(t, err, sqlfence.ErrUnguardable)
					var pens int
					if err := s.plain.QueryRow("SELECT count(*) FROM pens").Scan(&pens); err != nil || pens != 1 {
						t.Errorf("%d pens, %v; want 1", pens, err)
					}
					other := fmt.Sprintf(format, "others")
					errRaw, errFenced := run(t.Context(), s.plain, other), run(t.Context(), s.db, other)
					if fmt.Sprintf("%T %[1]v", errRaw) != fmt.Sprintf("%T %[1]v", errFenced) {
						t.Errorf("another table: %v, by the base driver %v", errFenced, errRaw)
					}
				})
			})
		}
	})
}
