package drivers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// With Key each row has a token of its own: that of book 1 is called books/1.

// holdingKeys returns a context with tokens of single books: key, value, ...
func holdingKeys(t testing.TB, pairs ...int64) context.Context {
	ctx := t.Context()
	for pair := range slices.Chunk(pairs, 2) {
		ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: fmt.Sprintf("books/%d", pair[0]), Value: pair[1]})
	}
	return ctx
}

// resetKeys is reset, with the mark seen by the ledger for each of the books 1 to 8.
func (s *shop) resetKeys(t *testing.T, mark int64) {
	t.Helper()
	s.reset(t, mark)
	for id := range 8 {
		s.raise(t, fmt.Sprintf("books/%d", id+1), mark)
	}
}

// eachKeyed runs test for a table with Key and each kind of fence, in each form.
func eachKeyed(t *testing.T, test func(t *testing.T, sh *shop, fence string, send func(context.Context, write) (int64, error))) {
	eachBase(t, func(t *testing.T, b base) {
		for _, fence := range fences {
			t.Run(fence.name, func(t *testing.T) {
				sh := setting{base: b}.shop(t, fence.rule, sqlfence.Key("id"))
				sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
					test(t, sh, fence.name, send)
				})
			})
		}
	})
}

func TestKeyComparesEachRowWithItsToken(t *testing.T) {
	two := []write{
		{"update", "UPDATE books SET price = $1 WHERE id IN (1, 2)", []any{30}},
		{"delete", "DELETE FROM books WHERE id < $1", []any{3}},
		{"upsert", "INSERT INTO books (id, isbn, price) VALUES ($1, $2, 30), ($3, $4, 30) ON CONFLICT (id) DO UPDATE SET price = excluded.price", []any{1, "i1", 2, "i2"}},
		{"upsert of constants", "INSERT INTO books (id, isbn, price) VALUES (2, 'i2', 30), (1, 'i1', 30) ON CONFLICT (id) DO UPDATE SET price = excluded.price", nil},
	}
	eachKeyed(t, func(t *testing.T, sh *shop, fence string, send func(context.Context, write) (int64, error)) {
		for _, w := range two {
			sh.resetKeys(t, 5)
			sh.raise(t, "books/2", 70)
			held := []int64{1, 5, 2, 70}
			if fence != "ledger" {
				// Stale for book 3, which isn't written. The ledger compares all that
				// an UPDATE or DELETE holds, because it can't see the rows.
				held = append(held, 3, 1)
			}
			if n, err := send(holdingKeys(t, held...), w); n < 1 || err != nil {
				t.Errorf("%s: %d rows, %v", w.name, n, err)
			}
			want := "1:30@5 2:30@70 3:10@5"
			if fence == "ledger" {
				want = "1:30@5 2:30@5 3:10@5" // the column is none of its business
			}
			if w.name == "delete" {
				want = "3:10@5"
			}
			if got := sh.state(t, true); got != want {
				t.Errorf("%s left %s, want %s", w.name, got, want)
			}

			// One of the two is stale, in either place.
			for _, tokens := range [][]int64{{1, 4, 2, 70}, {1, 70, 2, 4}} {
				sh.resetKeys(t, 5)
				sh.raise(t, map[bool]string{true: "books/1", false: "books/2"}[tokens[1] == 70], 70)
				unchanged := sh.unchanged(t)
				_, err := send(holdingKeys(t, tokens...), w)
				var stale *sqlfence.StaleError
				if !errors.As(err, &stale) || stale.Token.Value != 4 || stale.Current != 5 {
					t.Errorf("%s with tokens %v: %v, want token 4 stale", w.name, tokens, err)
				}
				unchanged()
			}
		}
	})
}

func TestKeyRefusesRowsOutOfScope(t *testing.T) {
	outside := []write{
		{"update", "UPDATE books SET price = $1 WHERE id = $2", []any{30, 2}},
		{"update of all", "UPDATE books SET price = $1", []any{30}},
		{"delete", "DELETE FROM books WHERE id = $1", []any{2}},
		{"delete of all", "DELETE FROM books", nil},
		{"insert", "INSERT INTO books (id, isbn) VALUES ($1, $2)", []any{7, "i7"}},
		{"insert of a constant", "INSERT INTO books (id, isbn) VALUES (7, $1)", []any{"i7"}},
		{"insert with another column first", "INSERT INTO books (isbn, id) VALUES ($1, $2)", []any{"i7", 7}},
		{"insert of several", "INSERT INTO books (id, isbn) VALUES ($1, $2), ($3, $4)", []any{8, "i8", 7, "i7"}},
		{"upsert", "INSERT INTO books (id, isbn, price) VALUES ($1, $2, 30) ON CONFLICT (id) DO UPDATE SET price = 30", []any{2, "i2"}},
		// Book 8 is in scope, but the row that gets the price is book 2.
		{"upsert by another unique column", "INSERT INTO books (id, isbn, price) VALUES ($1, $2, 30) ON CONFLICT (isbn) DO UPDATE SET price = 30", []any{8, "i2"}},
		{"upsert by another unique column, with a condition", "INSERT INTO books (id, isbn, price) VALUES ($1, $2, 30) ON CONFLICT (isbn) DO UPDATE SET price = 30 WHERE books.price = 10", []any{8, "i2"}},
	}
	eachKeyed(t, func(t *testing.T, sh *shop, fence string, send func(context.Context, write) (int64, error)) {
		sh.resetKeys(t, 5)
		sh.raise(t, "books/1", 9)
		sh.raise(t, "books/8", 9)
		unchanged := sh.unchanged(t)
		for _, w := range outside {
			_, err := send(holdingKeys(t, 1, 9, 8, 9), w)
			wantError(t, err, sqlfence.ErrOutOfScope)
			unchanged()
			if t.Failed() {
				t.Fatalf("by %s", w.name)
			}
		}
	})
}

// The key of a row can't be smuggled past the fence, nor moved.
func TestKeyRefusesKeysThatCannotBeSeen(t *testing.T) {
	eachKeyed(t, func(t *testing.T, sh *shop, fence string, send func(context.Context, write) (int64, error)) {
		sh.resetKeys(t, 5)
		unchanged := sh.unchanged(t)
		for _, query := range []string{
			"UPDATE books SET id = 7 WHERE id = 1",
			"INSERT INTO books (isbn) VALUES ('i7')",
			"INSERT INTO books VALUES (1, 'i1')",
			"INSERT INTO books (id) VALUES (3 + 4)",
			"INSERT INTO books (id) VALUES (NULL)",
			"INSERT INTO books (id) SELECT 7",
			"INSERT INTO books DEFAULT VALUES",
			"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 7",
		} {
			_, err := send(holdingKeys(t, 1, 9, 7, 9), write{query: query})
			if !errors.Is(err, sqlfence.ErrUnguardable) && !errors.Is(err, sqlfence.ErrOutOfScope) {
				t.Errorf("%s: %v, want ErrUnguardable or ErrOutOfScope", query, err)
			}
		}
		unchanged()
	})
}

// The token of the whole table is not that of a row, nor the other way round.
func TestKeyNeedsTheRowsToken(t *testing.T) {
	eachKeyed(t, func(t *testing.T, sh *shop, fence string, send func(context.Context, write) (int64, error)) {
		sh.resetKeys(t, 5)
		unchanged := sh.unchanged(t)
		for _, w := range rowWrites {
			_, err := send(holding(t, 100), w)
			wantError(t, err, sqlfence.ErrNoFence)
		}
		unchanged()
	})
}
