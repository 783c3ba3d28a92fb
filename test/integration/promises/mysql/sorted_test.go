package mysql_test

import (
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// An UPDATE that sorts its rows and reads its own table again: MariaDB evaluates its SET list behind a temporary
// table, with the mark of the row that it has read last.
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

// Rows that are sorted by anything else are updated as they are.
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

// A registered view may be one of joined tables, which MariaDB sorts in the same way.
func TestSortedUpdateOfAView(t *testing.T) {
	eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
		exec(t, plain, "RENAME TABLE books TO stock")
		for _, view := range []string{
			"SELECT b.id, b.grp, b.price, b.fence_token FROM stock b JOIN pens p ON p.grp >= b.grp AND p.id = 2",
			"SELECT id, grp, price, fence_token FROM stock WHERE id IN (SELECT id FROM pens)",
		} {
			exec(t, plain, "CREATE OR REPLACE VIEW books AS "+view)
			for _, query := range []string{
				"UPDATE books SET price = 5 ORDER BY RAND() LIMIT 1",
				"UPDATE LOW_PRIORITY books AS b SET b.price = 5 WHERE id > 0 ORDER BY b.grp, RAND() LIMIT 2",
				"UPDATE books FORCE KEY (grp) SET price = 5 ORDER BY UUID()",
				"UPDATE books SET price = 5 ORDER BY id LIMIT 1",
			} {
				exec(t, plain, "DELETE FROM stock")
				exec(t, plain, "INSERT INTO stock (id, grp, price, fence_token) VALUES (1, 0, 11, 7), (2, 0, 12, 7), (3, 1, 13, 1)")
				_, err := guarded.ExecContext(holding(3), query)
				var left int
				if scan := plain.QueryRow("SELECT COUNT(*) FROM stock WHERE price = 10 + id AND fence_token = IF(id = 3, 1, 7)").Scan(&left); scan != nil {
					t.Fatal(scan)
				}
				if err == nil || left != 3 {
					t.Errorf("%s: %v, %d rows are left by a stale token", query, err, left)
				}
			}
			if _, err := guarded.ExecContext(holding(8), "UPDATE books SET price = 5 WHERE id = 1"); err != nil {
				t.Error(err)
			}
		}
		exec(t, plain, "DROP VIEW books")
		exec(t, plain, "RENAME TABLE stock TO books")
	}, sqlfence.RowFence("fence_token"))
}
