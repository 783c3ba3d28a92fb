package mysql_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// In a query's condition IS NULL finds the date 0000-00-00 in a column that is NOT NULL. In other places, as in a CASE,
// IS NULL doesn't find this date.
func TestDeleteByNullFindsZeroDates(t *testing.T) {
	dsn := modes[2].with(t, setup(t))
	plain := open(t, dsn)
	exec(t, plain, "ALTER TABLE books ADD born date NOT NULL, ADD seen datetime NOT NULL")
	exec(t, plain, "ALTER TABLE books ADD FULLTEXT (title)")
	exec(t, plain, "INSERT INTO books (id, title, born, fence_token) VALUES (1, 'the sea', 0, 4), (2, 'the lake', 0, 4), (3, 'the sea', '2001-02-03', 4)")
	for id := range 30 {
		exec(t, plain, fmt.Sprintf("INSERT INTO fencing_tokens VALUES ('books/%d', 4)", id))
	}
	for name, rules := range map[string][]sqlfence.Rule{
		"row":            {sqlfence.RowFence("fence_token")},
		"key and ledger": {sqlfence.Ledger(), sqlfence.Key("id")},
	} {
		db := fence(t, dsn, rules...)
		for _, query := range []string{
			"DELETE FROM books WHERE born IS NULL",
			"DELETE FROM books WHERE seen is /* - */ null AND id < 3",
			"DELETE FROM books WHERE isnull(born) ORDER BY id LIMIT 3",
			"DELETE FROM books WHERE (born IS NULL OR id IN (SELECT id FROM pens WHERE id > 2)) AND NOT (born IS NULL AND id = 1)",
			"DELETE books FROM books JOIN pens ON pens.id = books.id WHERE books.born IS NULL",
			"DELETE FROM books WHERE MATCH (title) AGAINST ('lake') AND isbn IS NULL",
		} {
			want, got := run(t, t.Context(), plain, query), run(t, holding(4), db, query)
			if want.err != nil || want.affected == 0 {
				t.Fatalf("%s: %v, %d rows by the bare driver", query, want.err, want.affected)
			}
			if got.err != nil || got.affected != want.affected {
				t.Errorf("%s, %s: %v, %d rows, want %d", name, query, got.err, got.affected, want.affected)
			}
			if late := run(t, holding(3), db, query); !errors.Is(late.err, sqlfence.ErrStale) {
				t.Errorf("%s, %s: %v, want ErrStale", name, query, late.err)
			}
		}
	}
}
