package mysql_test

import (
	"testing"

	"github.com/sqlfence/sqlfence"
)

// In a mode where an empty text is NULL, as in Oracle, a row without a key is refused all the same.
func TestEmptyTextIsNull(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	if _, err := plain.Exec("SET sql_mode = 'EMPTY_STRING_IS_NULL'"); err != nil {
		t.Skip("the server has no such mode")
	}
	for _, interpolate := range []bool{false, true} {
		m := mode{interpolate: interpolate, sqlMode: "'EMPTY_STRING_IS_NULL'"}
		for _, rules := range [][]sqlfence.Rule{
			{sqlfence.RowFence("fence_token"), sqlfence.Key("isbn")},
			{sqlfence.Ledger(), sqlfence.Key("isbn")},
		} {
			db := fence(t, m.with(t, dsn), rules...)
			exec(t, plain, "REPLACE INTO fencing_tokens VALUES ('books/a', 9)")
			for _, query := range []string{
				"UPDATE books SET price = 99",
				"UPDATE IGNORE books SET price = 99",
				"INSERT INTO books (id, isbn) VALUES (1, 'a') ON DUPLICATE KEY UPDATE price = 99",
				"DELETE FROM books",
			} {
				exec(t, plain, "DELETE FROM books")
				exec(t, plain, "INSERT INTO books (id, isbn, price, fence_token) VALUES (1, NULL, 11, 5)")
				_, err := db.ExecContext(of("books/a", 9), query)
				if err == nil || count(t, plain, "id = 1 AND price = 11 AND fence_token = 5") != 1 {
					t.Errorf("%s: %v, %d", query, err, count(t, plain, "price = 11"))
				}
			}
		}
	}
}
