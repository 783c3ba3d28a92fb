package mysql_test

import (
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The servers read 1e0ON as 1e0 and ON.
func TestWordRightBehindANumber(t *testing.T) {
	eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
		for _, query := range []string{
			"INSERT INTO books SET id = 1e0ON DUPLICATE KEY UPDATE price = 3",
			"INSERT INTO books SET id = 1.0ON DUPLICATE KEY UPDATE price = 3",
			"INSERT INTO books (price, id) SELECT 1, 2e0ON DUPLICATE KEY UPDATE price = 3",
			"UPDATE books SET price = 4e0WHERE id = 1",
			"UPDATE books SET price = .4WHERE id = 1",
			"DELETE FROM books WHERE id = 1.0ORDER BY id",
		} {
			refill(t, plain)
			if bare := run(t, t.Context(), plain, query); bare.err != nil {
				t.Errorf("%s: by the bare driver %v", query, bare.err)
			}
			_, err := guarded.ExecContext(holding(4), query)
			harness.WantError(t, err, sqlfence.ErrUnguardable)
			if n := count(t, plain, untouched); n != 3 {
				t.Errorf("%s: %d books are left by a stale token", query, n)
			}
		}
	}, sqlfence.RowFence("fence_token"))
}
