package mysql_test

import (
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// MariaDB returns rows of a DELETE before it reaches the refused row. A caller gets the refusal all the same, even if
// it reads one row only, and no row is deleted.
func TestReturnedRowsOfARefusal(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	const query = "DELETE FROM books WHERE id > ? RETURNING id"
	if _, err := plain.Exec(query, 0); number(err) == 1064 {
		t.Skip("the server has no RETURNING")
	}
	for _, m := range modes[:2] {
		db := fence(t, m.with(t, dsn), sqlfence.RowFence("fence_token"))
		exec(t, plain, "DELETE FROM books")
		exec(t, plain, "INSERT INTO books (id, price, fence_token) VALUES (1, 1, 5), (2, 2, 5), (3, 3, 9)")
		var id int
		harness.WantStale(t, db.QueryRowContext(holding(6), query, 0).Scan(&id), 6, 9)
		_, err := harness.Returned(db.QueryContext(holding(6), query, 0))
		harness.WantStale(t, err, 6, 9)
		rows, err := db.QueryContext(holding(6), query, 0)
		if err != nil {
			t.Fatal(err)
		}
		rows.Next()
		harness.WantStale(t, rows.Close(), 6, 9)
		if n := count(t, plain, "TRUE"); n != 3 {
			t.Errorf("%s: %d books are left", m.name, n)
		}
	}
}
