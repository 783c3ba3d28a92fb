package badinput_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Bad input is refused by a clear, typed error before it reaches the database, or has the effect that it has without
// sqlfence. It never changes anything else.

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
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b)
		s.Reset(t, 5)
		check := func(kind string, cases []bad, base context.Context, rules ...sqlfence.Rule) {
			db, c := b.Counted(t, s.Source, harness.Books(rules...))
			for _, tt := range cases {
				t.Run(kind+"/"+tt.name, func(t *testing.T) {
					harness.EachWay(t, func(t *testing.T, run harness.RunFunc) {
						defer s.Unchanged(t)()
						c.Reset()
						err := run(sqlfence.WithFence(base, tt.token), db, harness.SetPrice, 30, 1)
						harness.WantError(t, err, tt.want)
						if len(err.Error()) > 1000 {
							t.Errorf("the error has %d bytes", len(err.Error()))
						}
						for _, call := range c.Calls() { // preparing looks for the ledger's function
							if call.Kind != "prepare" && !strings.Contains(call.Query, ":server:") {
								t.Errorf("the base driver was called: %s %s", call.Kind, call.Query)
							}
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

// Only sqlfence may write the fence column. A statement that assigns it is refused, and the error has the place of the
// column.
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
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		s.Reset(t, 5)
		all := slices.Clone(queries)
		if b.Dialect == sqlfence.SQLite {
			all = append(all, "UPDATE books SET |`fence_token` = 1", "UPDATE books SET |[fence_token] = 1",
				`UPDATE books SET |"FENCE_token" = 1`, "UPDATE books SET |'fence_token' = 1")
		} else if b.Dialect == sqlfence.MySQL {
			// MySQL spells ON CONFLICT as ON DUPLICATE KEY UPDATE, which is longer, so the error would name another
			// place.
			all = slices.DeleteFunc(all, func(query string) bool { return strings.Contains(query, "ON CONFLICT") })
			all = append(all, "UPDATE books SET |`fence_token` = 1", "UPDATE books SET |`FENCE_token` = 1", "UPDATE books b SET |b.fence_token = 1",
				"INSERT INTO books (id) VALUES (1) ON DUPLICATE KEY UPDATE price = 3, |fence_token = 4")
		} else {
			all = append(all, `UPDATE books SET |U&"fence\005ftoken" = 1`, "UPDATE ONLY books b SET |fence_token = 1",
				"UPDATE books SET |fence_token[1] = 1", "UPDATE books SET |fence_token.x = 1")
		}
		for _, query := range all {
			t.Run(query, func(t *testing.T) {
				defer s.Unchanged(t)()
				offset := strings.Index(query, "|")
				_, err := s.DB.ExecContext(harness.Holding(t, 7), strings.Replace(query, "|", "", 1))
				var unguardable *sqlfence.UnguardableError
				if !errors.As(err, &unguardable) || !errors.Is(err, sqlfence.ErrUnguardable) {
					t.Fatalf("err = %v, want ErrUnguardable", err)
				}
				if unguardable.Table != "books" || unguardable.Offset != offset || !strings.Contains(unguardable.Reason, "fence column") {
					t.Errorf("%v: want table books, offset %d", err, offset)
				}
			})
		}
		// These texts resemble an assignment of the fence column and aren't valid: the database refuses them.
		for _, query := range []string{"UPDATE books SET books.fence_token = 1", "UPDATE books SET fence_token"} {
			defer s.Unchanged(t)()
			if _, err := s.DB.ExecContext(harness.Holding(t, 7), query); err == nil {
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
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, fence := range harness.Fences {
			t.Run(fence.Name, func(t *testing.T) {
				s := harness.NewShop(t, b, fence.Rule)
				s.Reset(t, 9)
				if b.Dialect == sqlfence.MySQL { // an index has room for 3,072 bytes
					s.Exec(t, "ALTER TABLE books MODIFY isbn varchar(2900) CHARACTER SET latin1")
				}
				written := harness.Setting{Base: b}
				written.AsWritten = true // to translate so long a text takes longer than all the rest
				db := written.Fenced(t, s.Source, harness.Books(fence.Rule))
				insert := "INSERT INTO books (id, isbn) VALUES " + values
				_, err := db.ExecContext(t.Context(), insert)
				harness.WantError(t, err, sqlfence.ErrNoFence)
				// If one row of the upsert is stale, none of its rows is written.
				upsert := insert + b.Text(t, ", (1, 'new') ON CONFLICT (id) DO UPDATE SET isbn = excluded.isbn")
				_, err = db.ExecContext(harness.Holding(t, 8), upsert)
				harness.WantStale(t, err, 8, 9)
				if n := harness.CountBooks(t, s.Plain); n != 3 {
					t.Fatalf("%d books, want 3", n)
				}
				if _, err := db.ExecContext(harness.Holding(t, 9), insert); err != nil {
					t.Fatalf("%.200s", err.Error())
				}
				if n := harness.CountBooks(t, s.Plain); n != 3+count {
					t.Errorf("%d books, want %d", n, 3+count)
				}
				marked := 3
				if fence.Name == "row fence" {
					marked += count
				}
				var n int
				if err := s.Plain.QueryRow("SELECT count(*) FROM books WHERE fence_token = 9").Scan(&n); err != nil || n != marked {
					t.Errorf("%d books carry the mark, %v; want %d", n, err, marked)
				}
				s.Exec(t, "CREATE TABLE notes (id integer, isbn varchar(2900))")
				if n, err := harness.Affected(db.ExecContext(t.Context(), "INSERT INTO notes (id, isbn) VALUES "+values)); err != nil || n != count {
					t.Errorf("into another table: %d, %.200v", n, err)
				}
			})
		}
	})
}

// A text that can't be parsed is refused if it mentions a registered table. Otherwise the base driver gets it.
func TestBadText(t *testing.T) {
	texts := []string{
		"DELETE FROM %s WHERE isbn = 'open",
		`DELETE FROM %s WHERE "open = 1`,
		"DELETE FROM %s\x00 WHERE 1 = 0",
		"DELETE FROM pens\x00 %s",
		"DELETE FROM %s WHERE (id = 1",
		"DELETE FROM %s WHERE id = 1)",
		"DELETE FROM %s WHERE id = 1) OR (1 = 1",
		"DROP TABLE IF EXISTS nothing; DELETE FROM %s",
		"\xff DELETE FROM %s",
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		s.Exec(t, "CREATE TABLE others (id integer, isbn text)")
		all := slices.Clone(texts)
		if b.Dialect == sqlfence.Postgres {
			all = append(all, "DELETE FROM %s WHERE isbn = $x$ open", "DELETE FROM %s WHERE isbn = E'open\\'",
				"DELETE FROM %s /* open", "DELETE FROM pens /* %s", "DELETE FROM %s /* open /* nested */")
		} else {
			all = append(all, "DELETE FROM %s WHERE [open = 1", "DELETE FROM %s WHERE `open = 1")
		}
		if b.Dialect != sqlfence.MySQL { // MySQL's server checks the bytes of strings
			all = append(all, "DELETE FROM %s WHERE isbn = '\xff'")
		}
		for _, format := range all {
			t.Run(format, func(t *testing.T) {
				harness.EachWay(t, func(t *testing.T, run harness.RunFunc) {
					s.Reset(t, 5)
					s.Exec(t, "INSERT INTO pens (id) VALUES (1)")
					defer s.Unchanged(t)()
					err := run(harness.Holding(t, 7), s.DB, fmt.Sprintf(format, "books"))
					harness.WantError(t, err, sqlfence.ErrUnguardable)
					var pens int
					if err := s.Plain.QueryRow("SELECT count(*) FROM pens").Scan(&pens); err != nil || pens != 1 {
						t.Errorf("%d pens, %v; want 1", pens, err)
					}
					other := fmt.Sprintf(format, "others")
					errRaw, errFenced := run(t.Context(), s.Plain, other), run(t.Context(), s.DB, other)
					if fmt.Sprintf("%T %[1]v", errRaw) != fmt.Sprintf("%T %[1]v", errFenced) {
						t.Errorf("another table: %v, by the base driver %v", errFenced, errRaw)
					}
				})
			})
		}
	})
}
