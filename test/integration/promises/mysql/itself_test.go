package mysql_test

import (
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// An upsert whose query reads the same table is refused, because the guard's columns would be ambiguous, unless the
// query gives the table an alias.
func TestUpsertOfItsOwnTable(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	for _, m := range modes[:2] {
		db := fence(t, m.with(t, dsn), sqlfence.RowFence("fence_token"))
		exec(t, plain, "DELETE FROM books")
		exec(t, plain, "INSERT INTO books (id, price, fence_token) VALUES (1, 1, 5), (2, 2, 9)")
		const rows = "INSERT INTO books (id, price) SELECT "
		_, err := db.ExecContext(holding(9), rows+"id, price FROM books WHERE id = 1 ON DUPLICATE KEY UPDATE price = 3")
		harness.WantError(t, err, sqlfence.ErrUnguardable)
		const upsert = rows + "b.id, b.price FROM books AS b ON DUPLICATE KEY UPDATE books.price = 3"
		_, err = db.ExecContext(holding(8), upsert)
		harness.WantStale(t, err, 8, 9)
		if n := count(t, plain, "price = 3 OR fence_token = 8"); n != 0 {
			t.Errorf("%s: %d books are changed by a stale token", m.name, n)
		}
		if _, err := db.ExecContext(holding(9), upsert); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if n := count(t, plain, "price = 3 AND fence_token = 9"); n != 2 {
			t.Errorf("%s: %d books are changed, want 2", m.name, n)
		}
	}
}
