package sqlite_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
)

// Each part of a seal is needed: without it, what the seal refuses lands.
func TestSealCanFail(t *testing.T) {
	const keyed = "CREATE TABLE books (id integer PRIMARY KEY, price integer, title text UNIQUE, fence_token integer);\n" +
		"INSERT INTO books VALUES (1, 10, 'a', 7), (2, 20, 'b', 7), (3, 30, 'c', NULL)"
	for name, test := range map[string]struct{ old, new, attack string }{
		"the range of an update":       {"NOT BETWEEN -1000000000000000 - 900000000000000 AND -1", "IS NULL", "UPDATE books SET price = 0, fence_token = -2000000000000008"},
		"a mark that is NULL":          {" AND (SELECT began FROM sqlfence_seal) IS julianday('now')) IS NOT 1 BEGIN", ") = 0 BEGIN", "UPDATE books SET price = 0 WHERE id = 3"},
		"the comparison of an update":  {"% 1000000000000000 < abs(", "% 1000000000000000 < 0 * abs(", "UPDATE books SET price = 0, fence_token = -6"},
		"the sign of an insert":        {"NEW.`fence_token` NOT BETWEEN -900000000000000 AND -1", "0", "INSERT INTO books (id, fence_token) VALUES (9, 9)"},
		"rows in the way of an insert": {"WHEN EXISTS", "WHEN 0 AND EXISTS", "INSERT OR REPLACE INTO books (id, fence_token) VALUES (1, -6)"},
		"rows in the way by a column":  {"way.`title` = NEW.`title`", "0", "INSERT OR REPLACE INTO books (title, fence_token) VALUES ('a', -6)"},
		"rows in the way of an update": {"(OLD.`rowid` IS NOT NEW.`rowid`)", "0", "UPDATE OR REPLACE books SET id = 1, fence_token = -6 WHERE id = 3"},
		"the test for REPLACE":         {"VALUES (1, 1)", "SELECT 1, 1 WHERE 0", "INSERT OR REPLACE INTO books (id, fence_token) VALUES (1, -6)"},
		"the mark of a delete":         {"WHEN COALESCE(OLD.`fence_token`, 0) >= -1000000000000000 OR", "WHEN 0 AND", "DELETE FROM books WHERE id = 1"},
		"the deletion":                 {"DELETE FROM `books` WHERE", "DELETE FROM `books` WHERE 0 AND", "UPDATE books SET fence_token = -1000000000000006 WHERE id = 3"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, whole := range []bool{true, false} {
				l := newUnsealed(t, bases()[0], keyed)
				tables, err := sqlfence.Tables(l.db)
				if err != nil {
					t.Fatal(err)
				}
				stmts, err := schema.SealSQL(sqlfence.SQLite, tables[0], []string{"title"})
				if err != nil {
					t.Fatal(err)
				}
				text := strings.Join(stmts, ";;")
				if !strings.Contains(text, test.old) {
					t.Fatalf("no %s in %s", test.old, text)
				}
				if !whole {
					text = strings.ReplaceAll(text, test.old, test.new)
				}
				for _, stmt := range strings.Split(text, ";;") {
					l.exec(t, stmt)
				}
				before := rows(t, l.bare, "SELECT * FROM books")
				_, err = l.bare.Exec(test.attack)
				if after := rows(t, l.bare, "SELECT * FROM books"); whole && name != "the deletion" && (err == nil || fmt.Sprint(after) != fmt.Sprint(before)) {
					t.Errorf("it lands: %v", after)
				} else if !whole && (err != nil || fmt.Sprint(after) == fmt.Sprint(before)) {
					t.Errorf("%s is not needed: %v", test.old, err)
				}
			}
		})
	}
}
