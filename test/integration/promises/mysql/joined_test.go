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
