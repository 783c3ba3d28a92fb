package badinput_test

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The application's arguments stay where they are without sqlfence, and the token never replaces one of them. Each
// statement runs on two equal tables, with the bare driver and fenced. Afterwards the tables and the errors must be
// equal.

type argsCase struct {
	query string
	args  []any
}

// argsCases are arguments for all dialects: too few, too many, out of order, of wrong types.
var argsCases = []argsCase{
	{"UPDATE books SET price = $1 WHERE id = $2", nil},
	{"UPDATE books SET price = $1 WHERE id = $2", []any{30}},
	{"UPDATE books SET price = $1 WHERE id = $2", []any{30, 2}},
	{"UPDATE books SET price = $1 WHERE id = $2", []any{30, 2, 1}},
	{"UPDATE books SET price = $1 WHERE id = $2", []any{30, 2, 1, 1, 1}},
	{"UPDATE books SET price = 30 WHERE id = 2", []any{1}},
	{"UPDATE books SET price = 30 WHERE id = 2", []any{1, 2}},
	{"UPDATE books SET price = $1, writer = $1 WHERE id = $2", []any{30, 2}},
	{"UPDATE books SET price = $1 WHERE id = $1", []any{2}},
	{"UPDATE books SET price = $1 WHERE id = $1", []any{2, 3}},
	{"UPDATE books SET price = $1 WHERE isbn = $2", []any{30, "i2"}},
	{"UPDATE books SET price = $1 WHERE isbn = $2", []any{nil, "i2"}},
	{"UPDATE books SET price = $1 WHERE isbn = $2", []any{struct{}{}, "i2"}},
	{"UPDATE books SET price = $1 WHERE isbn = $2", []any{30, "sqlfence"}},
	{"DELETE FROM books WHERE id = $1 OR isbn = $2", []any{2, "i3"}},
	{"DELETE FROM books WHERE id = $1 OR isbn = $2", []any{2}},
	{"DELETE FROM books WHERE id = $1 OR isbn = $2", []any{2, "i3", "i1"}},
	{"INSERT INTO books (id, price) VALUES ($1, $2), ($3, $4)", []any{7, 70, 8, 80}},
	{"INSERT INTO books (id, price) VALUES ($1, $2), ($3, $4)", []any{7, 70, 8}},
	{"INSERT INTO books (id, price) VALUES ($1, $2), ($3, $4)", []any{7, 70, 8, 80, 9}},
	{"INSERT INTO books (id, price) SELECT id + $1, $2 FROM books WHERE id < $3", []any{10, 20, 3}},
	{"INSERT INTO books (id, price) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET price = excluded.price + $3", []any{2, 20, 5}},
}

// sqliteArgsCases have SQLite's placeholders: counted from left to right, with numbers, or with names.
var sqliteArgsCases = []argsCase{
	{"UPDATE books SET price = ? WHERE id = ?", []any{30, 2}},
	{"UPDATE books SET price = ? WHERE id = ?", []any{30}},
	{"UPDATE books SET price = ? WHERE id = ?", []any{30, 2, 1}},
	{"UPDATE books SET price = ?2 WHERE id = ?1", []any{2, 30}},
	{"UPDATE books SET price = ?2 WHERE id = ?", []any{1, 30, 3}},
	{"UPDATE books SET price = ?3 WHERE id = ?1", []any{2, 1, 30}},
	{"UPDATE books SET price = ?, writer = ?1 WHERE id = ?", []any{30, 2}},
	{"UPDATE books SET price = ?001 WHERE id = ?02", []any{30, 2}},
	{"UPDATE books SET price = :p WHERE id = :id", []any{sql.Named("id", 2), sql.Named("p", 30)}},
	{"UPDATE books SET price = :p WHERE id = :id", []any{sql.Named("p", 30)}},
	{"UPDATE books SET price = :p WHERE id = :id", []any{sql.Named("p", 30), sql.Named("id", 2), sql.Named("other", 1)}},
	{"UPDATE books SET price = :p WHERE id = :id", []any{30, 2}},
	{"UPDATE books SET price = @p WHERE id = @id", []any{sql.Named("id", 2), sql.Named("p", 30)}},
	{"UPDATE books SET price = $p WHERE id = $id", []any{sql.Named("id", 2), sql.Named("p", 30)}},
	{"UPDATE books SET price = $p WHERE id = $id", []any{30, 2}},
	{"UPDATE books SET price = :p WHERE id = ?", []any{30, 2}},
	{"UPDATE books SET price = ? WHERE id = :id", []any{30, sql.Named("id", 2)}},
	{"UPDATE books SET price = ? WHERE id = :id", []any{sql.Named("id", 2), 30}},
	{"UPDATE books SET price = :p WHERE id = ?2", []any{sql.Named("p", 30), 2}},
	{"UPDATE books SET price = @p, writer = :p WHERE id = $p", []any{sql.Named("p", 2)}},
	{"UPDATE books SET price = ?1 WHERE id = ?2", []any{sql.Named("id", 2), sql.Named("p", 30)}},
	{"UPDATE books SET price = $2 WHERE id = $1", []any{2, 30}},
	{"DELETE FROM books WHERE id = :id OR price = ? OR isbn = @isbn", []any{2, 7, sql.Named("isbn", "i3")}},
	{"DELETE FROM books WHERE id = :id OR isbn = @isbn", []any{sql.Named("isbn", "i3"), sql.Named("id", 2)}},
	{"DELETE FROM books WHERE (id = ? OR id = ?) AND price < ?", []any{1, 2, 99}},
	{"INSERT INTO books (id, price) VALUES (:id, ?), (?, :p)", []any{7, 70, 8, 80}},
	{"INSERT INTO books (id, price) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET price = ? + excluded.price", []any{2, 20, 5}},
	{"INSERT INTO books (id, price) VALUES (:id, :p) ON CONFLICT (id) DO UPDATE SET price = :p + 1", []any{sql.Named("p", 20), sql.Named("id", 2)}},
	{"INSERT INTO books (id, price) VALUES (?, ?), (?, ?), (9, ?)", []any{7, 70, 8, 80, 90}},
	{"INSERT INTO books (id, price) VALUES (?, ?), (?, ?), (9, ?)", []any{7, 70, 8, 80}},
	{"INSERT INTO books (id, price) SELECT id + ?, ? FROM books WHERE id < ?", []any{10, 20, 3}},
	{"INSERT INTO books (id, price) VALUES (?, ?), (?, ?) ON CONFLICT (id) DO UPDATE SET price = ? + excluded.price WHERE books.id < ?", []any{2, 20, 3, 30, 5, 3}},
	{"WITH x AS (SELECT ? AS v) UPDATE books SET price = (SELECT v FROM x) WHERE id = ?", []any{30, 2}},
	{"WITH x AS (SELECT ? AS v) DELETE FROM books WHERE id = ? AND price < (SELECT v FROM x) AND price <> ?", []any{90, 2, 1}},
	{"UPDATE books SET price = ? WHERE id = ? /* ? */ AND isbn <> '?' AND price <> ?", []any{30, 2, 1}},
	{"DELETE FROM books WHERE price < ? AND id IN (" + list("?", 20) + ") AND price <> ?", numbers(20, 99, 7)},
	{"DELETE FROM books WHERE price < ? AND id IN (" + list("?", 20) + ") AND price <> ?", numbers(20, 99)},
	{"DELETE FROM books WHERE price < ? AND id IN (" + list("?", 20) + ") AND abs(price) <> ? RETURNING id", numbers(20, 99, 7)},
	{"UPDATE books SET price = ?, writer = ? WHERE id IN (" + list("?", 20) + ") AND price <> ?", numbers(20, 30, 31, 7)},
	{"UPDATE books SET price = 30 WHERE id IN (" + list("?%d", 70) + ")", numbers(70)},
	{"DELETE FROM books WHERE id IN (" + list("?%d", 70) + ")", numbers(70)},
}

// list returns n placeholders.
func list(format string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(format, "%d", strconv.Itoa(i+1))
	}
	return strings.Join(all, ", ")
}

// numbers returns the first of some arguments, the numbers 2, 102, 202 and so on, and the other
// arguments.
func numbers(n int, others ...any) (all []any) {
	if len(others) > 1 {
		all, others = append(all, others[:len(others)-1]...), others[len(others)-1:]
	}
	for i := range n {
		all = append(all, 2+100*i)
	}
	return append(all, others...)
}

func TestBadArguments(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		cases := argsCases
		if b.Dialect == sqlfence.SQLite {
			cases = append(cases[:len(cases):len(cases)], sqliteArgsCases...)
		}
		rules := map[string][]sqlfence.Rule{
			"row fence": {sqlfence.RowFence("fence_token")},
			"ledger":    {sqlfence.Ledger()},
			"both":      {sqlfence.Ledger(), sqlfence.RowFence("fence_token")},
		}
		for fence, rules := range rules {
			t.Run(fence, func(t *testing.T) {
				s, twin := harness.NewShop(t, b, rules...), harness.NewShop(t, b)
				for _, tt := range cases {
					t.Run(fmt.Sprintf("%.200s %d", tt.query, len(tt.args)), func(t *testing.T) {
						harness.EachWay(t, func(t *testing.T, run harness.RunFunc) {
							s.Reset(t, 5)
							twin.Reset(t, 5)
							before := s.State(t, false)
							errRaw := run(t.Context(), twin.Plain, tt.query, tt.args...)
							want := twin.State(t, false)

							// With a stale token no existing book changes. With a row fence alone the write may add a
							// book: it has no stored token to compare with.
							err := run(harness.Holding(t, 4), s.DB, tt.query, tt.args...)
							got := s.State(t, false)
							if !strings.HasPrefix(got, before) || fence != "row fence" && got != before {
								t.Errorf("by a stale token: books are %s, were %s", got, before)
							}
							if errRaw == nil && want != before && !strings.HasPrefix(want, before) {
								harness.WantStale(t, err, 4, 5)
							}
							s.Reset(t, 5)
							s.Raise(t, "books", 6)
							err = run(harness.Holding(t, 6), s.DB, tt.query, tt.args...)
							if harness.ErrorText(err) != harness.ErrorText(errRaw) {
								t.Errorf("fenced: %v\n   raw: %v", err, errRaw)
							}
							if got = s.State(t, false); got != want {
								t.Errorf("fenced: books are %s\nby the base driver %s", got, want)
							}
						})
					})
				}
			})
		}
	})
}
