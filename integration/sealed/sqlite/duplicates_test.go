package sqlite_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/schema"
)

// Row 4 is this token's own, and rows with newer ones are in the way: a duplicate is what it is without a seal.
var duplicates = []string{
	"INSERT OR IGNORE INTO books (id, title) VALUES (4, 'a')",
	"INSERT OR IGNORE INTO books (id, title) VALUES (1, 'x')",
	"INSERT INTO books (id, title) VALUES (4, 'a') ON CONFLICT DO NOTHING",
	"INSERT INTO books (id, title) VALUES (4, 'a') ON CONFLICT (title) DO NOTHING",
	"INSERT INTO books (id, title) VALUES (1, 'a') ON CONFLICT (id) DO NOTHING",
	"INSERT INTO books (id, title) VALUES (4, 'a') ON CONFLICT (title) DO UPDATE SET price = 0 WHERE books.price > 1000",
	"INSERT INTO books (id, title) VALUES (4, 'a')",
	"INSERT INTO books (id, title) VALUES (1, 'x')",
	"INSERT INTO books (id, title) VALUES (4, 'a') RETURNING id",
	"INSERT INTO books (id, isbn, old) VALUES (4, 5, 0)",
	"INSERT INTO books (id, isbn, old) VALUES (4, 5, 1)",
	"INSERT OR ABORT INTO books (id, isbn) VALUES (4, 6)",
	"INSERT INTO books (id, isbn) VALUES (1, 6) ON CONFLICT (id) DO UPDATE SET isbn = excluded.isbn",
	"INSERT INTO books (id, price) VALUES (3, 31) ON CONFLICT (id) DO UPDATE SET price = excluded.price",
	"UPDATE books SET title = 'a' WHERE id = 4",
	"UPDATE OR IGNORE books SET title = 'a' WHERE id = 4",
	"UPDATE books SET isbn = 5, old = 0 WHERE id = 4",
	"UPDATE books SET isbn = 5 WHERE id = 4",
}

func TestDuplicates(t *testing.T) {
	const script = "CREATE TABLE books (id integer PRIMARY KEY, price integer, title text UNIQUE, isbn, old integer NOT NULL ON CONFLICT REPLACE DEFAULT 1, fence_token integer NOT NULL DEFAULT 0, CHECK (replace(title, 'a', 'b') <> ''));\n" +
		"CREATE UNIQUE INDEX current_price ON books (isbn) WHERE old = 0;\n" +
		"INSERT INTO books VALUES (-1, 0, NULL, NULL, 1, 9), (1, 10, 'a', 5, 0, 9), (2, 20, 'b', 6, 1, 9), (3, 30, 'c', 5, 1, 9)"
	each(t, func(t *testing.T, b harness.Base) {
		rules := []sqlfence.Rule{sqlfence.Key("id"), sqlfence.Ledger()}
		for _, query := range duplicates {
			var got [2]string
			for i, l := range []*lab{newUnsealed(t, b, script, rules...), newUnsealed(t, b, script, rules...)} {
				for name, value := range map[string]int64{"books/1": 9, "books/2": 9, "books/3": 9, "books/4": 3} {
					l.issue(t, name, value)
				}
				if i > 0 {
					l.seal(t)
				}
				if query[0] == 'U' {
					if _, err := l.bare.Exec("INSERT INTO books (id, fence_token) VALUES (4, -3)"); i > 0 && err != nil {
						t.Fatal(err)
					} else if i == 0 {
						l.exec(t, "UPDATE books SET fence_token = 3 WHERE id = 4")
					}
				}
				ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/1", Value: 9}, sqlfence.Token{Name: "books/3", Value: 9}, sqlfence.Token{Name: "books/4", Value: 3})
				result, err := l.db.ExecContext(ctx, query)
				got[i] = fmt.Sprint(rowsAffected(result, err), rows(t, l.bare, "SELECT * FROM books"))
			}
			if got[0] != got[1] {
				t.Errorf("%s\n%s\nunsealed:\n%s", query, got[1], got[0])
			}
		}
	})
}

// A row without a key of its own isn't taken for number -1, and a REPLACE is refused whoever declares it.
func TestDuplicatesByHand(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		l := newLab(t, b, plainBooks+";\nINSERT INTO books VALUES (-1, 0, 'd', 9)")
		l.exec(t, "INSERT INTO books (title, fence_token) VALUES ('e', -3)")
		for query, said := range map[string]string{
			"INSERT OR IGNORE INTO books (title, fence_token) VALUES ('a', -3)":                        "",
			"INSERT INTO books (title, fence_token) VALUES ('a', -3)":                                  "UNIQUE constraint failed: books.title",
			"INSERT OR ABORT INTO books (title, fence_token) VALUES ('a', -3)":                         "UNIQUE constraint failed",
			"INSERT OR FAIL INTO books (title, fence_token) VALUES ('a', -3)":                          "UNIQUE constraint failed",
			"INSERT OR REPLACE INTO books (title, fence_token) VALUES ('a', -3)":                       stale,
			"INSERT OR IGNORE INTO books (title, fence_token) VALUES ('f', -3), ('a', -3)":             "",
			"INSERT OR REPLACE INTO books (title, fence_token) VALUES ('g', -3), ('f', -3), ('a', -3)": stale,
		} {
			if _, err := l.bare.Exec(query); said == "" && err != nil || said != "" && (err == nil || !strings.Contains(err.Error(), said)) {
				t.Errorf("%s: %v, want %s", query, err, said)
			}
		}
		l.want(t, "-1 0 d 9", "1 10 a 7", "2 20 b 7", "3 30 c 0", "4 NULL e 3", "5 NULL f 3")
		if got := rows(t, l.bare, "SELECT duplicate, replaces FROM sqlfence_seal"); fmt.Sprint(got) != "[1 0]" {
			t.Errorf("the state is %s", got)
		}
	})
	each(t, func(t *testing.T, b harness.Base) {
		for hidden, seal := range map[string]func(l *lab){
			"ON":       func(l *lab) { l.migrate(t, []string{"title"}) },
			"ON /* */": func(l *lab) { l.seal(t) },
		} {
			l := newUnsealed(t, b, strings.Replace(plainBooks, "text UNIQUE", "text UNIQUE "+hidden+" CONFLICT REPLACE", 1))
			seal(l)
			for _, query := range []string{"INSERT INTO books (title, fence_token) VALUES ('a', -3)", "UPDATE books SET title = 'a', fence_token = -3 WHERE id = 3"} {
				if _, err := l.bare.Exec(query); err == nil || !strings.Contains(err.Error(), stale) {
					t.Errorf("%s: %v, want %s", query, err, stale)
				}
			}
			l.want(t, "1 10 a 7", "2 20 b 7", "3 30 c 0")
		}
	})
}

// migrate seals books as a migration does.
func (l *lab) migrate(t testing.TB, unique ...[]string) {
	t.Helper()
	tables, err := sqlfence.Tables(l.db)
	if err != nil {
		t.Fatal(err)
	}
	stmts, err := schema.SealSQL(sqlfence.SQLite, tables[0], unique...)
	if err != nil {
		t.Fatal(err)
	}
	for _, stmt := range stmts {
		l.exec(t, stmt)
	}
}

func rowsAffected(result sql.Result, err error) string {
	if err != nil {
		return err.Error()
	}
	n, err := result.RowsAffected()
	return fmt.Sprint(n, err)
}
