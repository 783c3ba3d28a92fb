package adopting_test

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// TestRules checks the table in the section "RowFence or Ledger" of docs/rules.md: which writes each rule refuses.
func TestRules(t *testing.T) {
	row, ledger := sqlfence.RowFence("fence_token"), sqlfence.Ledger()
	const update = "UPDATE books SET price = 20 WHERE id = 1"
	const upsert = "INSERT INTO books (id, isbn, price) VALUES (1, 'i1', 20) ON CONFLICT (id) DO UPDATE SET price = 20"
	for _, c := range []struct {
		name              string
		before            func(t *testing.T, sh *harness.Shop) // runs while token 5 is the newest
		token             int64
		write             string
		row, ledger, both error
	}{
		{
			name:   "the successor has written the row",
			before: func(t *testing.T, sh *harness.Shop) { newest(t, sh, "UPDATE books SET price = 30 WHERE id = 1") },
			token:  4, write: update, row: sqlfence.ErrStale, ledger: sqlfence.ErrStale, both: sqlfence.ErrStale,
		},
		{
			name:   "the successor has a token, and hasn't written the row",
			before: func(*testing.T, *harness.Shop) {},
			token:  4, write: update, ledger: sqlfence.ErrStale, both: sqlfence.ErrStale,
		},
		{
			name:   "the successor has deleted the row, and it is inserted again",
			before: func(t *testing.T, sh *harness.Shop) { newest(t, sh, "DELETE FROM books WHERE id = 1") },
			token:  4, write: upsert, ledger: sqlfence.ErrStale, both: sqlfence.ErrStale,
		},
		{
			name:   "a token that nobody has issued",
			before: func(*testing.T, *harness.Shop) {},
			token:  99, write: update, ledger: sqlfence.ErrNotIssued, both: sqlfence.ErrNotIssued,
		},
		{
			name: "the ledger was lost",
			before: func(t *testing.T, sh *harness.Shop) {
				newest(t, sh, "UPDATE books SET price = 30 WHERE id = 1")
				sh.Exec(t, "UPDATE fencing_tokens SET token = 4")
			},
			token: 4, write: update, row: sqlfence.ErrStale, both: sqlfence.ErrStale,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				for _, r := range []struct {
					rules []sqlfence.Rule
					want  error
				}{{[]sqlfence.Rule{row}, c.row}, {[]sqlfence.Rule{ledger}, c.ledger}, {[]sqlfence.Rule{row, ledger}, c.both}} {
					sh := harness.NewShop(t, b, r.rules...)
					sh.Reset(t, 3)
					sh.Raise(t, "books", 5)
					c.before(t, sh)
					_, err := sh.DB.ExecContext(harness.Holding(t, c.token), c.write)
					if !errors.Is(err, r.want) || r.want == nil && err != nil {
						t.Errorf("%d rules: err = %v, want %v", len(r.rules), err, r.want)
					}
				}
			})
		})
	}
}

// newest writes with the newest token.
func newest(t *testing.T, sh *harness.Shop, query string) {
	t.Helper()
	if _, err := sh.DB.ExecContext(harness.Holding(t, 5), query); err != nil {
		t.Fatal(err)
	}
}
