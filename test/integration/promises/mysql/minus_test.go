package mysql_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// Two minus signs begin a comment only before a blank or at the end of the statement. A comment whose content the
// server executes, or a guard that begins with a blank, must neither turn two signs into a comment nor hide one. Each
// kind of write gets the two signs after each of its words.
func TestTwoMinusSignsHideNoStaleWrite(t *testing.T) {
	writes := []string{
		"UPDATE books SET price = 99 ;",
		"UPDATE books , pens SET books.price = 99 ;",
		"UPDATE pens p JOIN (SELECT 1 AS n) o ON 1 = 1 JOIN books b SET b.price = 99 ;",
		"UPDATE pens p JOIN books b SET p.price = 3 , b.price = 99 ;",
		"DELETE FROM books WHERE 1 ;",
		"DELETE b FROM books b JOIN pens p ON 1 = 1 ;",
		"INSERT INTO books (id, isbn, price) SELECT 7 , 'i7' , 99 FROM pens WHERE 1 ;",
		"INSERT INTO books (id, isbn) VALUES (1, 'i1') ON DUPLICATE KEY UPDATE price = 99 ;",
		"REPLACE INTO books (id, isbn) SELECT 1 , 'x' ;",
		"BEGIN NOT ATOMIC SELECT 1 ; UPDATE books SET price = 99 ; END",
		"IF 1 THEN UPDATE books SET price = 99 ; END IF",
		"SET STATEMENT max_statement_time = 5 FOR UPDATE books SET price = 99",
		"ANALYZE UPDATE pens p JOIN (SELECT 1 AS n) o ON 1 = 1 JOIN books b SET b.price = 99",
	}
	signs := []string{" --", " --/*! 0 */ ", " --/*!50000 0 */ ", " --/*M! 0 */ ", " --/*!999999 0 */ ", " --/**/", " --(0) "}
	for name, rules := range map[string][]sqlfence.Rule{
		"ledger": {sqlfence.Ledger()}, "both": {sqlfence.RowFence("fence_token"), sqlfence.Ledger()},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := setup(t)
			plain := open(t, dsn)
			refill(t, plain)
			guarded := fence(t, dsn, rules...)
			run := func(text string) {
				for _, ctx := range []context.Context{holding(4), context.Background()} {
					_, _ = guarded.ExecContext(ctx, text) // refused by sqlfence, or invalid SQL
				}
				if count(t, plain, "TRUE") != 3 || count(t, plain, untouched) != 3 {
					t.Fatalf("written: %s", text)
				}
			}
			for _, write := range writes {
				words := strings.Split(write, " ")
				for i := 1; i <= len(words); i++ {
					for _, sign := range signs {
						run(strings.Join(words[:i], " ") + sign + strings.Join(words[i:], " "))
					}
				}
			}
			var n int
			if err := guarded.QueryRow("SELECT 10 --/*! 0 */").Scan(&n); err != nil || n != 10 {
				t.Errorf("a read without a registered table: %d, %v", n, err)
			}
		})
	}
}
