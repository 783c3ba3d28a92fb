package sealed_test

import (
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A seal compares the same in whatever sql_mode the sealing session was, although MySQL reads triggers in this mode.
// The session keeps its mode.
func TestSealInEverySQLMode(t *testing.T) {
	for _, mode := range []string{"", "HIGH_NOT_PRECEDENCE", "ANSI,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE", "PAD_CHAR_TO_FULL_LENGTH", "ORACLE", "EMPTY_STRING_IS_NULL"} {
		for _, rules := range [][]sqlfence.Rule{nil, {sqlfence.SingleUse()}, {sqlfence.Ledger(), sqlfence.Resource("books"), sqlfence.Key("author")}} {
			l := newUnsealed(t, harness.MySQL, rules...)
			l.exec(t, "INSERT INTO fencing_tokens VALUES ('books/1', 7)")
			l.exec(t, "UPDATE books SET author = 1")
			l.db.SetMaxOpenConns(1)
			if _, err := l.db.ExecContext(t.Context(), "SET SESSION sql_mode = '"+mode+"'"); err != nil {
				continue // only the other server has this mode
			}
			var before, after string
			l.query(t, "SELECT @@SESSION.sql_mode", &before)
			for range 2 {
				if err := schema.Seal(t.Context(), l.db); err != nil {
					t.Errorf("sql_mode '%s': %v", mode, err)
				}
			}
			if l.query(t, "SELECT @@SESSION.sql_mode", &after); after != before {
				t.Errorf("sql_mode is '%s' afterwards, was '%s'", after, before)
			}
			for _, query := range []string{
				"UPDATE books SET price = 99, fence_token = -6 WHERE id = 1",
				"UPDATE books SET price = 99 WHERE id = 1",
				"INSERT INTO books (id) VALUES (9)",
				"DELETE FROM books WHERE id = 2",
				"DELETE FROM books WHERE id = 1 AND LENGTH(@sqlfence_delete := CONCAT('books:', NOW(6), ':', 6)) > 0",
			} {
				if _, err := l.plain.ExecContext(t.Context(), query); err == nil {
					t.Errorf("sealed in sql_mode '%s': no error from %s", mode, query)
				}
			}
			l.exec(t, "UPDATE books SET price = 11, fence_token = -7 WHERE id = 3")
			l.want(t, "1:10@7 2:10@7 3:11@7")
		}
	}
}

// query reads one value by the fenced connection.
func (l *lab) query(t testing.TB, query string, value *string) {
	t.Helper()
	if err := l.db.QueryRowContext(t.Context(), query).Scan(value); err != nil {
		t.Fatal(err)
	}
}

// A seal reads a key as a guard reads the key, for every collation and type.
func TestKeyIsReadAsByAGuard(t *testing.T) {
	for _, test := range []struct{ change, one, other string }{
		{"CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false); ALTER TABLE books ADD k text COLLATE nocase", "a", "A"},
		{"ALTER TABLE books ADD k char(5)", "a", "b"},
		{"ALTER TABLE books ADD k boolean", "true", "false"},
	} {
		l := newUnsealed(t, harness.Bases[1], sqlfence.Ledger(), sqlfence.Resource("books"), sqlfence.Key("k"))
		l.exec(t, test.change)
		l.exec(t, "INSERT INTO fencing_tokens VALUES ('books/"+test.one+"', 8), ('books/"+test.other+"', 9)")
		l.exec(t, "UPDATE books SET k = CASE id WHEN 1 THEN '"+test.one+"' ELSE '"+test.other+"' END::"+map[bool]string{true: "boolean", false: "text"}[test.one == "true"])
		l.seal(t)
		for _, query := range []string{
			"UPDATE books SET price = 99, fence_token = -8 WHERE id < 3",               // stale for one of the rows
			"UPDATE books SET k = '" + test.other + "', fence_token = -8 WHERE id = 1", // moves the row
			"UPDATE books SET price = 99, fence_token = -8 WHERE id = 2",
		} {
			if _, err := l.plain.ExecContext(t.Context(), query); err == nil {
				t.Errorf("%s: no error from %s: %s", test.change, query, l.books(t))
			}
		}
		for _, query := range []string{"UPDATE books SET price = 11 WHERE id = 1", "DELETE FROM books WHERE id = 1"} {
			ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/" + test.one, Value: 8})
			if _, err := l.db.ExecContext(ctx, query); err != nil {
				t.Errorf("%s: %s: %v", test.change, query, err)
			}
		}
		l.want(t, "2:10@7 3:10@0")
	}
}
