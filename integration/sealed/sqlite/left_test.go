package sqlite_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
)

// later returns when the database's clock has moved on: a statement doesn't begin with another one any more then.
func (l *lab) later(t *testing.T) {
	t.Helper()
	const now = "SELECT julianday('now')"
	for began := rows(t, l.bare, now)[0]; rows(t, l.bare, now)[0] == began; {
	}
}

// OR FAIL leaves a mark as it is written, where a trigger of the table's own fails. Such a row is no
// more open than any other, and the next write that proves its token has its mark positive again.
func TestMarksThatStayNegative(t *testing.T) {
	const script = plainBooks + ";\nCREATE TABLE log (what text UNIQUE);\nINSERT INTO log VALUES ('price');\n" +
		"CREATE TRIGGER logged AFTER UPDATE OF price ON books BEGIN INSERT INTO log VALUES ('price'); END;\n" +
		"CREATE TRIGGER added AFTER INSERT ON books BEGIN INSERT INTO log VALUES ('price'); END;\n" +
		"CREATE TRIGGER kept BEFORE DELETE ON books BEGIN INSERT OR FAIL INTO log VALUES ('price'); END"
	each(t, func(t *testing.T, b harness.Base) {
		for leaves, left := range map[string][]string{
			"UPDATE OR FAIL books SET price = 11, fence_token = -8 WHERE id = 1":    {"1 11 a -8", "2 20 b 7", "3 30 c 0"},
			"INSERT OR FAIL INTO books (id, price, fence_token) VALUES (9, 11, -8)": {"1 10 a 7", "2 20 b 7", "3 30 c 0", "9 11 NULL -8"},
			"UPDATE OR FAIL books SET fence_token = -1000000000000008 WHERE id = 1": {"1 10 a -1000000000000008", "2 20 b 7", "3 30 c 0"},
		} {
			l := newLab(t, b, script)
			if _, err := l.bare.Exec(leaves); err == nil || !strings.Contains(err.Error(), "log.what") {
				t.Fatal(err)
			}
			l.want(t, left...)
			l.exec(t, "DELETE FROM log")
			l.later(t)
			for attack, said := range map[string]string{
				"UPDATE books SET price = 0 WHERE fence_token < 0":                                                             unproven,
				"UPDATE books SET price = 0, fence_token = abs(fence_token) WHERE fence_token < 0":                             unproven,
				"UPDATE books SET price = 0, fence_token = 8 WHERE fence_token < 0":                                            unproven,
				"UPDATE books SET price = 0, fence_token = -7 WHERE fence_token < 0":                                           stale,
				"UPDATE books SET price = 0, fence_token = -1000000000000007 WHERE fence_token < 0":                            stale,
				"UPDATE OR REPLACE books SET id = (SELECT id FROM books WHERE fence_token < 0), fence_token = -7 WHERE id = 3": stale,
				"REPLACE INTO books (id, fence_token) SELECT id, -7 FROM books WHERE fence_token < 0":                          stale,
				"DELETE FROM books WHERE fence_token < 0":                                                                      unproven,
			} {
				if _, err := l.bare.Exec(attack); err == nil || !strings.Contains(err.Error(), said) {
					t.Errorf("after %s: %s: %v, want %s", leaves, attack, err, said)
				}
				l.want(t, left...)
			}
			for _, query := range []string{"UPDATE books SET price = 0 WHERE fence_token < 0", "DELETE FROM books WHERE fence_token < 0"} {
				if _, err := l.db.ExecContext(holding(t, 7), query); !errors.Is(err, sqlfence.ErrStale) {
					t.Errorf("after %s: %s: %v", leaves, query, err)
				}
			}
			l.want(t, left...)
			if strings.Contains(leaves, "1000000000000008") {
				continue // it is higher than all tokens until the table is sealed again
			}
			if _, err := l.db.ExecContext(holding(t, 9), "UPDATE books SET price = 12 WHERE fence_token < 0"); err != nil {
				t.Error(err)
			}
			if got := rows(t, l.bare, "SELECT price FROM books WHERE fence_token = 9"); fmt.Sprint(got) != "[12]" {
				t.Errorf("after %s: prices with 9 are %s", leaves, got)
			}
		}
	})
}
