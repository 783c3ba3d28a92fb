package forged_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// In a table without triggers a negative stored token, whatever stored it, counts as its absolute value. In each kind
// of write an older token is stale, and a newer one passes.
func TestG10NegativeMarkCountsByItsSize(t *testing.T) {
	fence := sqlfence.RowFence("fence_token")
	for name, rules := range map[string][]sqlfence.Rule{
		"row fence":  {fence},
		"key":        {fence, sqlfence.Key("id")},
		"single use": {fence, sqlfence.SingleUse()},
		"ledger":     {fence, sqlfence.Ledger()},
		"observed":   {fence, sqlfence.InMode(sqlfence.Observe)},
	} {
		t.Run(name, func(t *testing.T) {
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				sh := harness.NewShop(t, b, rules...)
				for _, w := range sh.Guarded("row fence", sh.Runnable(t, writes(b))) {
					w := w.As(b.Dialect)
					for _, tt := range []struct {
						mark, token int64
						stale       bool
					}{
						{-9, 3, true}, {-9, 8, true}, {-9, 9, name == "single use"}, {-9, 10, false},
						{-1, 1, name == "single use"}, {-1, 2, false}, {math.MinInt64, 10, true}, {math.MinInt64 + 1, 10, true},
						{-sqlfence.MaxToken, 10, true}, {9, 8, true}, {9, 10, false},
					} {
						sh.Reset(t, tt.mark)
						sh.Raise(t, "books", tt.token)
						unchanged := sh.Unchanged(t)
						_, err := sh.DB.ExecContext(holding(t, name, tt.token), w.Query, w.Args...)
						if name == "observed" {
							if err != nil {
								t.Errorf("%s with %d on %d: %v", w.Query, tt.token, tt.mark, err)
							}
							continue
						}
						var stale *sqlfence.StaleError
						switch {
						case !tt.stale && err != nil:
							t.Errorf("%s with %d on %d: %v", w.Query, tt.token, tt.mark, err)
						case !tt.stale:
						case !errors.As(err, &stale) || stale.Current != size(tt.mark):
							t.Errorf("%s with %d on %d: %v", w.Query, tt.token, tt.mark, err)
						default:
							unchanged()
						}
					}
				}
			})
		})
	}
}

// writes update or delete book 1, and some also other books.
func writes(b harness.Base) []harness.Write {
	all := append(slices.Clone(harness.RowWrites),
		harness.Write{Name: "update of all", Query: "UPDATE books SET price = $1", Args: []any{30}},
		harness.Write{Name: "update by join", Query: "UPDATE books SET price = o.price + $1 FROM books AS o WHERE o.id = books.id", Args: []any{20}},
		harness.Write{Name: "delete by subquery", Query: "DELETE FROM books WHERE id IN (SELECT id FROM books WHERE price = $1)", Args: []any{10}},
		harness.Write{Name: "upsert of several", Query: "INSERT INTO books (id, isbn, price) VALUES ($1, $2, 30), (7, 'i7', 30) ON CONFLICT (id) DO UPDATE SET price = excluded.price", Args: []any{1, "i1"}},
	)
	if b.Dialect == sqlfence.Postgres {
		all = append(all,
			harness.Write{Name: "merge, update", Query: "MERGE INTO books USING (SELECT 1 AS i) AS s ON books.id = s.i WHEN MATCHED THEN UPDATE SET price = $1::int", Args: []any{30}},
			harness.Write{Name: "merge, delete", Query: "MERGE INTO books USING (SELECT $1::int AS i) AS s ON books.id = s.i WHEN MATCHED THEN DELETE", Args: []any{1}},
			harness.Write{Name: "in WITH", Query: "WITH w AS (UPDATE books SET price = $1 WHERE id = 1 RETURNING id) SELECT count(*) FROM w", Args: []any{30}},
			harness.Write{Name: "delete by join", Query: "DELETE FROM books USING (SELECT $1::int AS i) AS p WHERE p.i = books.id", Args: []any{1}},
		)
	}
	return all
}

func holding(t *testing.T, rules string, value int64) context.Context {
	if rules == "key" {
		return harness.HoldingKeys(t, 1, value, 2, value, 3, value, 7, value)
	}
	return harness.Holding(t, value)
}

func size(mark int64) int64 {
	if mark == math.MinInt64 {
		return math.MaxInt64
	}
	return max(mark, -mark)
}

// If a context has several tokens, each is compared with the stored tokens of its own rows.
func TestG10NegativeMarksOfSeveralTokens(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b, sqlfence.RowFence("fence_token"), sqlfence.Key("id"))
		for _, query := range []string{
			"UPDATE books SET price = 30 WHERE id IN (1, 2)", "DELETE FROM books WHERE id IN (1, 2)",
			"INSERT INTO books (id, isbn, price) VALUES (1, 'i1', 30), (2, 'i2', 30) ON CONFLICT (id) DO UPDATE SET price = excluded.price",
		} {
			for first, second := range map[int64]int64{10: 4, 8: 6, 9: 4, 3: 3, 11: 6, 12: 5} {
				sh.Reset(t, -9)
				sh.Exec(t, "UPDATE books SET fence_token = -5 WHERE id = 2")
				unchanged := sh.Unchanged(t)
				_, err := sh.DB.ExecContext(harness.HoldingKeys(t, 1, first, 2, second), query)
				if fresh := first >= 9 && second >= 5; fresh != (err == nil) || !fresh && !errors.Is(err, sqlfence.ErrStale) {
					t.Errorf("%s with %d and %d: %v", query, first, second, err)
				} else if !fresh {
					unchanged()
				}
			}
		}
	})
}

// A guarded write with a token stores it as a positive number, also in a row with a negative one. A statement that
// Observe mode sends unchanged leaves the negative one.
func TestG10MarkIsPositiveAgain(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for name, rules := range map[string][]sqlfence.Rule{"enforced": nil, "observed": {sqlfence.InMode(sqlfence.Observe)}} {
			sh := harness.NewShop(t, b, append(rules, sqlfence.RowFence("fence_token"))...)
			for token, want := range map[int64]int64{10: 10, 7: -9} {
				if name == "enforced" && token < 9 {
					continue
				}
				sh.Reset(t, -9)
				if _, err := sh.DB.ExecContext(harness.Holding(t, token), "UPDATE books SET price = 30 WHERE id = 1"); err != nil {
					t.Fatal(err)
				}
				if got, want := sh.State(t, true), fmt.Sprintf("1:30@%d 2:10@-9 3:10@-9", want); got != want {
					t.Errorf("%s, with %d: %s, want %s", name, token, got, want)
				}
			}
		}
	})
}
