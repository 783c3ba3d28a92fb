package mysql_test

import (
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// An UPDATE with ORDER BY has a subquery on the updated table. MariaDB fills a temporary table first, and then
// evaluates the SET list with the fence column of the row that was read last.
func TestSortedUpdateOfWhatItReadsItself(t *testing.T) {
	for name, rules := range map[string][]sqlfence.Rule{
		"row":    {sqlfence.RowFence("fence_token")},
		"key":    {sqlfence.RowFence("fence_token"), sqlfence.Key("id")},
		"serial": {sqlfence.RowFence("fence_token"), sqlfence.Serial("serial")},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
				exec(t, plain, "CREATE OR REPLACE VIEW mine AS SELECT id, price FROM books")
				for _, query := range []string{
					"UPDATE books SET price = 5 WHERE id IN (SELECT z.id FROM books z) ORDER BY RAND() LIMIT 2",
					"UPDATE books SET price = 5 WHERE id IN (SELECT id FROM mine) ORDER BY UUID()",
					"UPDATE books SET price = (SELECT MAX(z.price) FROM books z) ORDER BY RAND() LIMIT 1",
					"UPDATE books SET price = 5 ORDER BY (SELECT COUNT(*) FROM books z WHERE z.price > books.price), RAND() LIMIT 1",
				} {
					refill(t, plain)
					exec(t, plain, "UPDATE books SET fence_token = IF(id = 3, 1, 7)")
					_, err := guarded.ExecContext(holding(3), query)
					harness.WantError(t, err, sqlfence.ErrUnguardable)
					if n := count(t, plain, "price = 10 + id AND fence_token = IF(id = 3, 1, 7)"); n != 3 {
						t.Errorf("%s: %d books are left by a stale token", query, n)
					}
				}
			}, rules...)
		})
	}
}

// An UPDATE with any other ORDER BY is guarded as usual.
func TestSortedUpdate(t *testing.T) {
	eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
		for _, query := range []string{
			"UPDATE books SET price = 5 WHERE id > 0 ORDER BY RAND() LIMIT 3",
			"UPDATE books SET price = 5 WHERE grp = 0 ORDER BY price DESC",
		} {
			refill(t, plain)
			exec(t, plain, "UPDATE books SET fence_token = IF(id = 3, 1, 7)")
			_, err := guarded.ExecContext(holding(3), query)
			harness.WantStale(t, err, 3, 7)
			if _, err := guarded.ExecContext(holding(7), query); err != nil || count(t, plain, "price = 5 AND fence_token = 7") != 3 {
				t.Errorf("%s: %v", query, err)
			}
		}
	}, sqlfence.RowFence("fence_token"))
}
