package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// queriesOfRows are queries whose rows an INSERT stores, with an argument. Each returns a row. If no row of pens
// satisfies the WHERE, an aggregate returns a row all the same.
var queriesOfRows = []string{
	"SELECT ? + 6, 7",
	"SELECT 6 + ?, 7 LIMIT 1",
	"SELECT 7, 8 WHERE NOT EXISTS (SELECT 1 FROM pens WHERE id > 5 + ?)",
	"SELECT 7, COUNT(*) HAVING COUNT(*) < 1 + ?",
	"(SELECT id + 7, price FROM pens WHERE id < 2 + ?)",
	"(SELECT 7, COUNT(*) FROM pens WHERE id = 99 + ?)",
	"SELECT 7, COUNT(*) FROM pens WHERE 1 = 0 AND id = ?",
	"SELECT 7, COUNT(*) FROM pens WHERE FALSE HAVING COUNT(*) < ?",
	"SELECT 7, MAX(id) + ? FROM pens WHERE 1 = 1",
	"SELECT 7, COALESCE(MAX(id), ?) FROM pens WHERE id > 1 AND id < 1",
	"SELECT 7, COUNT(DISTINCT grp) + ? FROM pens WHERE NULL",
	"SELECT DISTINCT 7, COUNT(*) FROM pens WHERE 1 = 0 OR id = 100 + ?",
	"SELECT 7, COUNT(*) + ? FROM pens WHERE id IN (SELECT id FROM pens WHERE 1 = 0)",
	"SELECT 7, COUNT(*) FROM (SELECT 1 AS x WHERE 0 = ?) y WHERE 1 = 0",
	"SELECT 7, COUNT(*) FROM pens p LEFT JOIN pens q ON q.id = p.id + ? WHERE p.id = 99",
	"SELECT 7, COALESCE((SELECT MAX(pens.id)), 3) FROM pens WHERE 1 = 0 AND id = ?",
	"SELECT 7, COUNT(*) FROM pens WHERE id = ? LIMIT 1",
	"SELECT grp + 7, COUNT(*) FROM pens WHERE id > ? GROUP BY grp",
	"SELECT 7, MIN(id) FROM pens WHERE id >= ? GROUP BY NULL",
	"SELECT 7, MAX(id) FROM pens GROUP BY 'x' HAVING MAX(id) > ?",
	"SELECT grp + 7, MAX(price) FROM pens WHERE id > ? GROUP BY 1 HAVING MAX(price) > 1 ORDER BY 1 LIMIT 1",
	"SELECT id + 7, ABS(price) + LENGTH(SHA2(id, 256)) FROM pens WHERE id > ? ORDER BY id FOR UPDATE",
	"SELECT id + 7, LEAST(price, ?) FROM pens LOCK IN SHARE MODE",
	"SELECT 7, 8 UNION SELECT id + 8, price FROM pens WHERE id = ?",
	"SELECT id + 20, 8 FROM pens WHERE 1 = 0 UNION ALL SELECT 7, COUNT(*) FROM pens WHERE id = 99 + ?",
	"(SELECT 7, COUNT(*) FROM pens WHERE 1 = 0 UNION ALL SELECT 8, ? ORDER BY 1 LIMIT 1)",
	"SELECT id + 7, 1 FROM pens EXCEPT SELECT id + 7, 1 FROM pens WHERE id = ?",
	"WITH some AS (SELECT id FROM pens) SELECT 7, COUNT(*) + ? FROM some WHERE id = 99",
}

// TestInsertedQueries inserts the rows of each query. With a stale token no row is inserted, whatever parts of the
// query the servers leave out. With the newest token the bare driver's rows are inserted.
func TestInsertedQueries(t *testing.T) {
	for name, rules := range map[string][]sqlfence.Rule{
		"ledger": {sqlfence.Ledger()},
		"both":   {sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Serial("serial")},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
				for _, query := range queriesOfRows {
					for _, insert := range []string{"INSERT INTO books (id, price) %s", "INSERT IGNORE books (id, price) %s", "INSERT INTO books (id, price) %s ON DUPLICATE KEY UPDATE title = 'u'"} {
						if text := fmt.Sprintf(insert, query); harness.Keep(t, text) {
							compareStaleAndFresh(t, plain, guarded, text, 1)
						}
					}
				}
			}, rules...)
		})
	}
}

// TestSpelledWrites has writes that name tables or rows in ways that only MySQL has.
func TestSpelledWrites(t *testing.T) {
	eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
		for _, query := range []string{
			"UPDATE books value SET price = ? WHERE value.id = 1",
			"UPDATE books quick SET quick.price = ? WHERE quick.id = 1",
			"DELETE value FROM books AS value WHERE value.id = ?",
			"UPDATE (books b JOIN pens p ON p.id = b.id) SET b.price = p.price + ?",
			"UPDATE ((books b, pens p)) SET b.price = 1, p.price = ? WHERE b.id = p.id",
			"UPDATE (books) SET price = ? WHERE id = 2",
			"UPDATE books JOIN (SELECT id, price AS cost FROM pens) p ON p.id = books.id SET price = cost + ?, title = 'n'",
			"UPDATE (SELECT 2 AS two) p, books SET price = ? WHERE id = two",
		} {
			compareStaleAndFresh(t, plain, guarded, query, 1)
		}
	}, sqlfence.RowFence("fence_token"))
}

// TestRowsOfFunctions has rows with no value, placeholder or plain constant, that would be stored the same inside of a
// CASE.
func TestRowsOfFunctions(t *testing.T) {
	eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
		for _, query := range []string{
			"INSERT INTO books (title) VALUES (UPPER(?))",
			"INSERT INTO books (grp, touched) VALUES (LENGTH(?), TRUE), (LENGTH('x'), FALSE)",
			"INSERT INTO books (grp, price) VALUES (LENGTH(?), - 3)",
			"INSERT INTO books (price, title) VALUES (ABS(?), HEX(12)) ON DUPLICATE KEY UPDATE title = 'u'",
			"INSERT INTO books SET grp = 1 + 1, title = CONCAT('a', ?)",
		} {
			compareStaleAndFresh(t, plain, guarded, query, 1)
		}
	}, sqlfence.Ledger())
}

// TestRowsOfNothing has rows with default values only.
func TestRowsOfNothing(t *testing.T) {
	eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
		for _, query := range []string{"INSERT INTO books () VALUES ()", "INSERT books VALUES (), ()", "INSERT INTO books () VALUES () ON DUPLICATE KEY UPDATE title = 'u'"} {
			compareStaleAndFresh(t, plain, guarded, query)
			refill(t, plain)
			if _, err := guarded.ExecContext(holding(5), query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
			if n := count(t, plain, "id > 3 AND fence_token = 5 AND serial = 1"); n == 0 || n != count(t, plain, "id > 3") {
				t.Errorf("%s: %d rows have the mark and the serial", query, n)
			}
		}
	}, sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Serial("serial"))
}

// TestRowsWithAnAlias tests upserts with SET and an alias for the new row, which MariaDB doesn't support.
func TestRowsWithAnAlias(t *testing.T) {
	eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
		for _, query := range []string{
			"INSERT INTO books SET id = ?, price = 3 AS new ON DUPLICATE KEY UPDATE price = new.price + 1",
			"INSERT INTO books SET id = ?, price = 3 AS new(m, n) ON DUPLICATE KEY UPDATE price = m + n",
		} {
			if run(t, context.Background(), plain, query, 1).err != nil {
				t.Skip("this server doesn't read it")
			}
			compareStaleAndFresh(t, plain, guarded, query, 1)
		}
	}, sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Serial("serial"))
}

// compareStaleAndFresh runs a write with an old token and with the newest token. The newest one is in the ledger and in
// the reached books.
func compareStaleAndFresh(t *testing.T, plain, guarded *sql.DB, query string, args ...any) {
	t.Helper()
	refill(t, plain)
	want := run(t, context.Background(), plain, query, args...)
	if want.err != nil {
		t.Fatalf("%s: %v", query, want.err)
	}
	tx, err := guarded.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tx.ExecContext(holding(4), query, args...)
	harness.WantStale(t, err, 4, 5)
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	if n := count(t, plain, untouched); n != 3 || count(t, plain, "TRUE") != 3 {
		t.Errorf("%s: a stale token has written, and left %d books", query, n)
	}
	got := run(t, holding(5), guarded, query, args...)
	if got.err != nil || len(got.left) != len(want.left) || got.pens != want.pens || got.affected != want.affected {
		t.Errorf("%s: %d rows, %v; want %d rows; pens %s, want %s", query, got.affected, got.err, want.affected, got.pens, want.pens)
	}
	for id, b := range want.left {
		if got.left[id].rest != b.rest {
			t.Errorf("%s: book %d is %q, want %q", query, id, got.left[id].rest, b.rest)
		}
	}
}

// TestConditionWithAssignmentDeletesTheSameRows has conditions in which the value of a variable extends past AND.
func TestConditionWithAssignmentDeletesTheSameRows(t *testing.T) {
	dsn := setup(t)
	plain, fenced := open(t, dsn), fence(t, dsn, sqlfence.RowFence("fence_token"))
	const stored = "SELECT COALESCE(GROUP_CONCAT(id ORDER BY id), '') FROM books"
	for _, condition := range []string{"NOT @a := 0 AND id = 1", "0 = @a := 0 AND id = 1", "@a := id AND price > 5"} {
		var left [2]string
		for i, db := range []*sql.DB{plain, fenced} {
			exec(t, plain, "DELETE FROM books")
			exec(t, plain, "INSERT INTO books (id, price, fence_token) VALUES (1, 10, 5), (2, 5, 5), (3, 20, 5)")
			if _, err := db.ExecContext(holding(5), "DELETE FROM books WHERE "+condition); err != nil {
				t.Fatalf("%s: %v", condition, err)
			}
			if err := plain.QueryRow(stored).Scan(&left[i]); err != nil {
				t.Fatal(err)
			}
		}
		if left[0] != left[1] || left[0] == "1,2,3" {
			t.Errorf("%s leaves the rows %q, and with a fence %q", condition, left[0], left[1])
		}
	}
}
