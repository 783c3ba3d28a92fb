package mysql_test

import (
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A DELETE of joined tables is compared with the joined rows only. The servers know that both keys are equal, and might
// evaluate the guard for a row before the join.
func TestJoinedDeleteLeavesOtherRowsAlone(t *testing.T) {
	eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
		for _, query := range []string{
			"DELETE b FROM books b JOIN pens p ON p.id = b.id",
			"DELETE b FROM books b JOIN pens p ON p.id = b.id WHERE p.grp = 2",
			"DELETE FROM b USING pens p, books b WHERE p.id = b.id",
		} {
			refill(t, plain)
			exec(t, plain, "UPDATE books SET id = 7, fence_token = 9 WHERE id = 1") // no pen matches this row
			_, err := guarded.ExecContext(holding(4), query)
			harness.WantStale(t, err, 4, 5)
			if n := count(t, plain, "TRUE"); n != 3 {
				t.Errorf("%s: %d books are left by a stale token", query, n)
			}
			if _, err := guarded.ExecContext(holding(5), query); err != nil || count(t, plain, "id = 2") != 0 || count(t, plain, "id = 7") != 1 {
				t.Errorf("%s: %v", query, err)
			}
		}
	}, sqlfence.RowFence("fence_token"))
}

// A DELETE finds its rows by texts that the column's collation considers equal to texts of other rows. MariaDB keeps the
// results of subqueries under such texts.
func TestDeleteTellsTextsApartThatACollationConsidersEqual(t *testing.T) {
	dsn := setup(t)
	plain, guarded := open(t, dsn), fence(t, dsn, sqlfence.RowFence("fence_token"))
	exec(t, plain, "DROP TABLE books")
	exec(t, plain, "CREATE TABLE books (id bigint PRIMARY KEY, isbn varchar(20) COLLATE utf8mb4_general_ci, price bigint, "+
		"fence_token bigint NOT NULL DEFAULT 0, KEY (isbn))")
	for _, query := range []string{
		"DELETE b FROM books b JOIN pens p ON p.id = 1 WHERE BINARY b.isbn = 'A'",
		"DELETE b FROM books b JOIN pens p ON p.id = 1 WHERE b.isbn COLLATE utf8mb4_bin = 'A' AND RAND() < 2",
		"DELETE b FROM pens p JOIN books b ON BINARY b.isbn = 'A' WHERE p.id = 1",
		"DELETE b FROM pens p JOIN books b ON BINARY b.isbn = 'A' AND p.id = 1",
		"DELETE FROM books WHERE BINARY isbn = 'A' AND (price IS NULL OR price > 0)",
	} {
		exec(t, plain, "DELETE FROM books")
		exec(t, plain, "INSERT INTO books (id, isbn, price) VALUES (1, 'a', 1), (2, 'A', 1), (3, 'a ', 1), (4, 'b', 1)")
		_, err := guarded.ExecContext(holding(5), query)
		var left string
		if err := plain.QueryRow("SELECT GROUP_CONCAT(id ORDER BY id) FROM books").Scan(&left); err != nil {
			t.Fatal(err)
		}
		if err != nil || left != "1,3,4" {
			t.Errorf("%s: %v; the rows %s are left", query, err, left)
		}
	}
}
