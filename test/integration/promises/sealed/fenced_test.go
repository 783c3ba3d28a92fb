package sealed_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A fenced program can write while the table is unsealed, sealed and unsealed again.
func TestFencedWrites(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		for name, rules := range map[string][]sqlfence.Rule{"row": nil, "ledger": {sqlfence.Ledger()}} {
			t.Run(name, func(t *testing.T) {
				l := newUnsealed(t, b, rules...)
				price := 10
				for _, state := range []string{"unsealed", "sealed", "sealed twice", "unsealed again"} {
					switch state {
					case "sealed", "sealed twice":
						l.seal(t)
					case "unsealed again":
						if err := schema.Unseal(t.Context(), l.db, "books"); err != nil {
							t.Fatal(err)
						}
					}
					for _, db := range []*sql.DB{l.db, l.open(t)} {
						price++
						for _, query := range []string{
							fmt.Sprintf("UPDATE books SET price = %d WHERE id = 1", price),
							fmt.Sprintf("INSERT INTO books (id, price) VALUES (9, %d)", price),
							"DELETE FROM books WHERE id = 9",
						} {
							if name == "ledger" || query[0] != 'I' { // a new row has no newer stored token
								if _, err := db.ExecContext(holding(t, 6), query); !errors.Is(err, sqlfence.ErrStale) {
									t.Errorf("%s: stale %s: %v", state, query, err)
								}
							}
							result, err := db.ExecContext(holding(t, 7), query)
							if err != nil {
								t.Fatalf("%s: %s: %v", state, query, err)
							}
							if n, _ := result.RowsAffected(); n != 1 {
								t.Errorf("%s: %s: %d rows", state, query, n)
							}
						}
						l.want(t, fmt.Sprintf("1:%d@7 2:10@7 3:10@0", price))
					}
				}
			})
		}
	})
}

// A refusal by the database is the same typed error from every method of a fenced connection.
func TestRefusalsAreTyped(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		l := newLab(t, b, sqlfence.Ledger())
		ctx := sqlfence.Bypass(t.Context(), "to meet the seal")
		for query, want := range map[string]error{
			"UPDATE books SET price = 11 WHERE id = 1":                   sqlfence.ErrNoFence,
			"UPDATE books SET price = 11, fence_token = 8 WHERE id = 1":  sqlfence.ErrNoFence,
			"UPDATE books SET price = 11, fence_token = -6 WHERE id = 1": sqlfence.ErrStale,
			"UPDATE books SET price = 11, fence_token = -6 WHERE id = 3": sqlfence.ErrStale,
			"UPDATE books SET price = 11, fence_token = -8 WHERE id = 1": sqlfence.ErrNotIssued,
			"INSERT INTO books (id) VALUES (9)":                          sqlfence.ErrNoFence,
			"DELETE FROM books WHERE id = 1":                             sqlfence.ErrNoFence,
		} {
			_, err := l.db.ExecContext(ctx, query)
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", query, err, want)
			}
			var stale *sqlfence.StaleError
			if errors.As(err, &stale) && (stale.Table != "books" || stale.Token != token(6) || stale.Current != 7) {
				t.Errorf("%s: %+v", query, stale)
			}
		}
		l.want(t, "1:10@7 2:10@7 3:10@0")
	})
}
