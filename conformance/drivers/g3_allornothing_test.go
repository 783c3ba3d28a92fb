package drivers

import (
	"context"
	"fmt"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// bulkWrites each reach the books 1, 2 and 3.
var bulkWrites = []write{
	{"update of all", "UPDATE books SET price = $1", []any{30}},
	{"update by condition", "UPDATE books SET price = price + $1 WHERE price = $2", []any{20, 10}},
	{"update by subquery", "UPDATE books SET price = $1 WHERE id IN (SELECT id FROM books)", []any{30}},
	{"update by join", "UPDATE books SET price = o.price + $1 FROM books AS o WHERE o.id = books.id", []any{20}},
	{"delete of all", "DELETE FROM books", nil},
	{"delete by condition", "DELETE FROM books WHERE price = $1", []any{10}},
	{"delete by subquery", "DELETE FROM books WHERE id IN (SELECT id FROM books WHERE price = $1)", []any{10}},
	{"upsert of several", `INSERT INTO books (id, isbn, price) VALUES ($1, $2, 30), ($3, $4, 30), ($5, $6, 30), (7, 'i7', 30)
		ON CONFLICT (id) DO UPDATE SET price = excluded.price`, []any{1, "i1", 2, "i2", 3, "i3"}},
	{"upsert by another unique column", `INSERT INTO books (id, isbn, price) VALUES (4, $1, 30), (5, $2, 30), (6, $3, 30)
		ON CONFLICT (isbn) DO UPDATE SET price = excluded.price`, []any{"i1", "i2", "i3"}},
	{"upsert from a query", `INSERT INTO books (id, isbn, price) SELECT id, isbn, price + $1 FROM books WHERE true
		ON CONFLICT (id) DO UPDATE SET price = excluded.price`, []any{20}},
}

// A statement is applied whole or not at all, wherever among its rows the one
// with a newer mark is met. It never skips that row silently.
func TestG3AllOrNothing(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.RowFence("fence_token"))
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, w := range bulkWrites {
				for newer := 1; newer <= 3; newer++ {
					sh.reset(t, 2)
					sh.exec(t, fmt.Sprintf("UPDATE books SET fence_token = 9 WHERE id = %d", newer))
					unchanged := sh.unchanged(t)
					_, err := send(holding(t, 5), w)
					wantStale(t, err, 5, 9)
					unchanged()
					if t.Failed() {
						t.Fatalf("by %s, newer is book %d", w.name, newer)
					}
				}
			}
		})
	})
}

// The same writes with no newer row in their way reach every row.
func TestG3AppliesWhole(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.RowFence("fence_token"))
		for _, w := range bulkWrites {
			sh.reset(t, 2)
			n, err := forms[0].run(holding(t, 5), sh.db, w)
			want := map[int64]string{3: "1:30@5 2:30@5 3:30@5", 4: "1:30@5 2:30@5 3:30@5 7:30@5"}[n]
			if w.name[:6] == "delete" && n == 3 {
				want = ""
			}
			if got := sh.state(t, true); err != nil || n < 3 || got != want {
				t.Errorf("%s: %d rows, %v, left %q; want %q", w.name, n, err, got, want)
			}
		}
	})
}

// Under the ledger, too, a refused statement leaves nothing behind.
func TestG3LedgerAllOrNothing(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.Ledger())
		for _, w := range bulkWrites {
			sh.reset(t, 9)
			unchanged := sh.unchanged(t)
			_, err := forms[0].run(holding(t, 5), sh.db, w)
			wantStale(t, err, 5, 9)
			unchanged()
		}
	})
}
