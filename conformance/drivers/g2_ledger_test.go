package drivers

import (
	"context"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// Once token t has been issued or adopted for a name, no write with a token < t
// commits on the tables that this name guards.

func TestG2LedgerRefusesAnOlderToken(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.Ledger())
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, w := range slices.Concat(rowWrites, freshInserts) {
				sh.reset(t, 8)
				if _, err := sh.issue(t.Context()); err != nil {
					t.Fatal(err)
				}
				unchanged := sh.unchanged(t)
				_, err := send(holding(t, 8), w)
				wantStale(t, err, 8, 9)
				unchanged()
				if t.Failed() {
					t.Fatalf("by %s", w.name)
				}
			}
		})
	})
}

// The newest token passes; so does one from elsewhere that the ledger has not
// caught up with.
func TestG2LedgerLetsEqualAndNewerTokensPass(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.Ledger())
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, w := range slices.Concat(rowWrites, freshInserts) {
				for _, value := range []int64{9, 10} {
					sh.reset(t, 9)
					before := sh.state(t, false)
					if n, err := send(holding(t, value), w); n == 0 || err != nil {
						t.Errorf("%s with token %d: %d rows, %v", w.name, value, n, err)
					}
					if after := sh.state(t, false); after == before {
						t.Errorf("%s with token %d changed nothing", w.name, value)
					}
				}
			}
		})
	})
}

// A name that the ledger doesn't know would compare with nothing, so it fails.
func TestG2LedgerRefusesAnUnknownName(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.Ledger())
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, w := range slices.Concat(rowWrites, freshInserts) {
				sh.reset(t, 1)
				sh.exec(t, "DELETE FROM fencing_tokens")
				unchanged := sh.unchanged(t)
				_, err := send(holding(t, 1), w)
				wantError(t, err, sqlfence.ErrUnknownName)
				unchanged()
			}
		})
	})
}

// Several tables may hang on one name, and a name guards only its own tables.
func TestG2LedgerGuardsByResource(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t)
		db := s.fenced(t, sh.source,
			books(sqlfence.Resource("shop")), sqlfence.WithTable("pens", sqlfence.Resource("shop")))
		sh.raise(t, "shop", 9)
		sh.raise(t, "books", 1)
		for value, want := range map[int64]error{8: sqlfence.ErrStale, 9: nil} {
			sh.reset(t, 1)
			ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "shop", Value: value})
			for _, query := range []string{"UPDATE books SET price = 30", "INSERT INTO pens (id, price) VALUES (1, 1)"} {
				if _, err := db.ExecContext(ctx, query); want == nil && err != nil {
					t.Errorf("%s with token %d: %v", query, value, err)
				} else if want != nil {
					wantError(t, err, want)
				}
			}
		}
		_, err := db.ExecContext(holding(t, 100), "UPDATE books SET price = 30")
		wantError(t, err, sqlfence.ErrNoFence)
	})
}

// With both rules a write has to pass both.
func TestG2LedgerTogetherWithRowFence(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.Ledger(), sqlfence.RowFence("fence_token"))
		for _, w := range rowWrites {
			for _, c := range []struct{ row, ledger, token, current int64 }{{9, 1, 8, 9}, {1, 9, 8, 9}, {9, 9, 9, 0}} {
				sh.reset(t, c.row)
				sh.raise(t, "books", c.ledger)
				unchanged := sh.unchanged(t)
				n, err := forms[0].run(holding(t, c.token), sh.db, w)
				if c.current == 0 {
					if n != 1 || err != nil {
						t.Errorf("%s: %d rows, %v", w.name, n, err)
					}
					continue
				}
				wantStale(t, err, c.token, c.current)
				unchanged()
			}
		}
	})
}
