package guarantees_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// bulkWrites each reach the books 1, 2 and 3.
var bulkWrites = []harness.Write{
	{Name: "update of all", Query: "UPDATE books SET price = $1", Args: []any{30}},
	{Name: "update by condition", Query: "UPDATE books SET price = price + $1 WHERE price = $2", Args: []any{20, 10}},
	{Name: "update by subquery", Query: "UPDATE books SET price = $1 WHERE id IN (SELECT id FROM books)", Args: []any{30}},
	{Name: "update by join", Query: "UPDATE books SET price = o.price + $1 FROM books AS o WHERE o.id = books.id", Args: []any{20}},
	{Name: "delete of all", Query: "DELETE FROM books", Args: nil},
	{Name: "delete by condition", Query: "DELETE FROM books WHERE price = $1", Args: []any{10}},
	{Name: "delete by subquery", Query: "DELETE FROM books WHERE id IN (SELECT id FROM books WHERE price = $1)", Args: []any{10}},
	{Name: "upsert of several", Query: `INSERT INTO books (id, isbn, price) VALUES ($1, $2, 30), ($3, $4, 30), ($5, $6, 30), (7, 'i7', 30)
		ON CONFLICT (id) DO UPDATE SET price = excluded.price`, Args: []any{1, "i1", 2, "i2", 3, "i3"}},
	{Name: "upsert by another unique column", Query: `INSERT INTO books (id, isbn, price) VALUES (4, $1, 30), (5, $2, 30), (6, $3, 30)
		ON CONFLICT (isbn) DO UPDATE SET price = excluded.price`, Args: []any{"i1", "i2", "i3"}},
	{Name: "upsert from a query", Query: `INSERT INTO books (id, isbn, price) SELECT o.id, o.isbn, o.price + $1 FROM books AS o WHERE true
		ON CONFLICT (id) DO UPDATE SET price = excluded.price`, Args: []any{20}},
}

// A statement is applied to all its rows or to none, wherever among them it finds the row with a newer stored token. It
// never skips this row silently.
func TestG3AllOrNothing(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.RowFence("fence_token"))
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for _, w := range sh.Runnable(t, bulkWrites) {
				for newer := 1; newer <= 3; newer++ {
					sh.Reset(t, 2)
					sh.Exec(t, fmt.Sprintf("UPDATE books SET fence_token = 9 WHERE id = %d", newer))
					unchanged := sh.Unchanged(t)
					_, err := send(harness.Holding(t, 5), w)
					harness.WantStale(t, err, 5, 9)
					unchanged()
					if t.Failed() {
						t.Fatalf("by %s, newer is book %d", w.Name, newer)
					}
				}
			}
		})
	})
}

// Without a newer stored token the same writes reach every row.
func TestG3AppliesWhole(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.RowFence("fence_token"))
		for _, w := range sh.Runnable(t, bulkWrites) {
			sh.Reset(t, 2)
			rows, err := harness.Forms[0].Run(t.Context(), sh.Plain, w.As(s.Dialect))
			if err != nil || rows < 3 {
				t.Fatalf("%s by the bare driver: %d rows, %v", w.Name, rows, err)
			}
			want := strings.ReplaceAll(sh.State(t, true), "@2", "@5")
			want = strings.ReplaceAll(want, "7:30@0", "7:30@5")
			sh.Reset(t, 2)
			n, err := harness.Forms[0].Run(harness.Holding(t, 5), sh.DB, w.As(s.Dialect))
			if got := sh.State(t, true); err != nil || n != rows || got != want {
				t.Errorf("%s: %d rows, %v, left %q; want %d, %q", w.Name, n, err, got, rows, want)
			}
		}
	})
}

// Under the ledger a refused statement also leaves no change.
func TestG3LedgerAllOrNothing(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.Ledger())
		for _, w := range s.Guarded("ledger", sh.Runnable(t, bulkWrites)) {
			sh.Reset(t, 9)
			unchanged := sh.Unchanged(t)
			_, err := harness.Forms[0].Run(harness.Holding(t, 5), sh.DB, w.As(s.Dialect))
			harness.WantStale(t, err, 5, 9)
			unchanged()
		}
	})
}
