package mysql_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// The number 0 in a column with AUTO_INCREMENT stands for a key that the server chooses, so a
// token for the row 0 covers no new row.
func TestZeroIsNoKeyOfANewRow(t *testing.T) {
	for name, rule := range map[string]sqlfence.Rule{"row": sqlfence.RowFence("fence_token"), "ledger": sqlfence.Ledger()} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
				exec(t, plain, "REPLACE INTO fencing_tokens VALUES ('books/0', 9)")
				for _, s := range []struct {
					query string
					args  []any
				}{
					{"INSERT INTO books (id, isbn) VALUES (0, 'x')", nil},
					{"INSERT INTO books (id, isbn) VALUES ('0', 'x')", nil},
					{"INSERT INTO books (id, isbn) VALUES (?, 'x')", []any{0}},
					{"INSERT INTO books (id, isbn) VALUES (?, 'x')", []any{"0"}},
					{"INSERT INTO books (id, isbn) VALUES (?, 'x')", []any{[]byte("0")}},
					{"INSERT IGNORE INTO books SET isbn = 'x', id = ?", []any{0}},
					{"INSERT INTO books (id, isbn) VALUES (0, 'x') ON DUPLICATE KEY UPDATE price = 1", nil},
				} {
					refill(t, plain)
					ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books/0", Value: 9})
					_, err := guarded.ExecContext(ctx, s.query, s.args...)
					if added := count(t, plain, "id > 3"); err == nil || added != 0 {
						t.Errorf("%s %v: %d rows, %v", s.query, s.args, added, err)
					}
				}
			}, rule, sqlfence.Key("id"))
		})
	}
}

// Under a token of another key the server may replace a zero by a generated key. No row is moved by this.
func TestZeroMovesNoRow(t *testing.T) {
	eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
		exec(t, plain, "DELETE FROM books")
		exec(t, plain, "INSERT INTO books (id, isbn, fence_token) VALUES (1, 'i1', 1)")
		exec(t, plain, "UPDATE books SET id = 0")
		_, err := guarded.ExecContext(of("books/0", 9), "INSERT INTO books (id, isbn) VALUES (0, 'i1') ON DUPLICATE KEY UPDATE id = VALUES(id)")
		if err == nil || count(t, plain, "id = 0 AND fence_token = 1") != 1 {
			t.Errorf("the row has moved: %v", err)
		}
	}, sqlfence.RowFence("fence_token"), sqlfence.Key("id"))
}
