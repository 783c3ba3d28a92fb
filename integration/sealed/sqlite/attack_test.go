package sqlite_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/integration/harness"
)

// What a seal says.
const (
	unproven = "sqlfence: table books is sealed: "
	stale    = "sqlfence: stale token for table books, which has a newer one"
)

// other are what writes to books without naming it, or by another name.
const other = plainBooks + `;
CREATE TABLE authors (id integer PRIMARY KEY, name text);
INSERT INTO authors VALUES (1, 'x'), (2, 'y'), (3, 'z'), (4, 'no books');
ALTER TABLE books ADD COLUMN author integer REFERENCES authors ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE books ADD COLUMN second integer DEFAULT 2 REFERENCES authors ON DELETE SET DEFAULT;
ALTER TABLE books ADD COLUMN third integer REFERENCES authors ON DELETE SET NULL;
UPDATE books SET author = 1, second = 2, third = 3;
CREATE TABLE orders (book integer);
CREATE TRIGGER ordered AFTER INSERT ON orders BEGIN UPDATE books SET price = 0 WHERE id = NEW.book; END;
CREATE TRIGGER returned AFTER DELETE ON orders BEGIN DELETE FROM books WHERE id = OLD.book; END;
CREATE TRIGGER replaced AFTER UPDATE ON orders BEGIN INSERT OR REPLACE INTO books (id, price) VALUES (NEW.book, 0); END;
CREATE VIEW cheap AS SELECT * FROM books;
CREATE TRIGGER cheaper INSTEAD OF UPDATE ON cheap BEGIN UPDATE books SET price = NEW.price, fence_token = NEW.fence_token WHERE id = OLD.id; END;
INSERT INTO orders VALUES (3)`

// attacks are writes that carry no token, or a stale one, with what is said about them.
var attacks = map[string]string{
	"UPDATE books SET price = 0 WHERE id = 1":                                unproven,
	"UPDATE books SET price = 0, fence_token = 9 WHERE id = 1":               unproven,
	"UPDATE books SET price = 0, fence_token = fence_token":                  unproven,
	"UPDATE books SET price = 0, fence_token = NULL":                         unproven,
	"UPDATE OR IGNORE books SET price = 0":                                   unproven,
	"UPDATE OR FAIL books SET price = 0":                                     unproven,
	"UPDATE OR REPLACE books SET title = 'b' WHERE id = 1":                   unproven,
	"UPDATE OR REPLACE books SET title = 'b', fence_token = -6 WHERE id = 3": stale,
	"UPDATE OR REPLACE books SET id = 2, fence_token = -6 WHERE id = 3":      stale,
	"UPDATE OR REPLACE books SET rowid = 2, fence_token = -6 WHERE id = 3":   stale,
	"UPDATE books SET price = 0, fence_token = -6":                           stale,
	"UPDATE books SET fence_token = -1000000000000006 WHERE id = 1":          stale,
	"UPDATE books SET fence_token = -1000000000000000 WHERE id = 1":          unproven,
	"DELETE FROM books":                 unproven,
	"DELETE FROM books WHERE id = 3":    unproven,
	"INSERT INTO books (id) VALUES (9)": unproven,
	"INSERT INTO books SELECT id + 10, price, title || 'x', fence_token, author, second, third FROM books":     unproven,
	"INSERT OR IGNORE INTO books (id) VALUES (9)":                                                              unproven,
	"INSERT INTO books DEFAULT VALUES":                                                                         unproven,
	"REPLACE INTO books (id, price) VALUES (1, 0)":                                                             unproven,
	"REPLACE INTO books (id, price, fence_token) VALUES (1, 0, -6)":                                            stale,
	"INSERT OR REPLACE INTO books (title, fence_token) VALUES ('a', -6)":                                       stale,
	"INSERT INTO books (id) VALUES (1) ON CONFLICT DO UPDATE SET price = 0":                                    unproven,
	"INSERT INTO books (id, fence_token) VALUES (1, -9) ON CONFLICT DO UPDATE SET price = 0":                   unproven,
	"INSERT INTO books (id, fence_token) VALUES (1, -6) ON CONFLICT DO UPDATE SET price = 0, fence_token = -6": stale,
	"INSERT INTO books (id, fence_token) VALUES (3, -6) ON CONFLICT DO UPDATE SET id = 2, fence_token = -6":    "UNIQUE constraint failed",
	"WITH x AS (SELECT 1 AS id) UPDATE books SET price = 0 FROM x WHERE x.id = books.id":                       unproven,
	"INSERT INTO orders VALUES (1)":                                                                            unproven,
	"DELETE FROM orders":                                                                                       unproven,
	"UPDATE orders SET book = 1":                                                                               unproven,
	"UPDATE cheap SET price = 0":                                                                               unproven,
	"UPDATE cheap SET price = 0, fence_token = -6":                                                             stale,
	"DELETE FROM authors WHERE id = 1":                                                                         unproven, // CASCADE
	"DELETE FROM authors WHERE id = 3":                                                                         unproven, // SET NULL
	"UPDATE authors SET id = 5 WHERE id = 1":                                                                   unproven,
	"REPLACE INTO authors (id) VALUES (1)":                                                                     unproven,
	"UPDATE books SET price = 0, fence_token = -fence_token - 900000000000000 WHERE id = 1":                    unproven,
}

func TestAttacks(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		for _, recursive := range []int{0, 1} {
			l := newLab(t, b, other)
			l.exec(t, "PRAGMA foreign_keys = ON")
			l.exec(t, fmt.Sprintf("PRAGMA recursive_triggers = %d", recursive))
			before := rows(t, l.bare, "SELECT * FROM books ORDER BY id")
			for attack, said := range attacks {
				_, err := l.bare.ExecContext(t.Context(), attack)
				if err == nil || !strings.Contains(err.Error(), said) {
					t.Errorf("%s: %v, want %s", attack, err, said)
				}
				l.want(t, before...)
			}
		}
	})
}

// The same from SQLite's own program, which a person uses.
func TestCommandLine(t *testing.T) {
	program, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("sqlite3 isn't there")
	}
	l := newLab(t, bases()[0], other)
	file, _, _ := strings.Cut(strings.TrimPrefix(l.dsn, "file:"), "?")
	run := func(file string, commands ...string) string {
		out, _ := exec.CommandContext(t.Context(), program, append([]string{file}, commands...)...).CombinedOutput()
		return string(out)
	}
	before := rows(t, l.bare, "SELECT * FROM books ORDER BY id")
	for attack, said := range attacks {
		if out := run(file, "PRAGMA foreign_keys = ON", attack); !strings.Contains(out, said) {
			t.Errorf("%s: %s, want %s", attack, out, said)
		}
	}
	l.want(t, before...)

	// By another file, by a file of values, and by a copy.
	csv := filepath.Join(t.TempDir(), "books.csv")
	if err := os.WriteFile(csv, []byte("9,0,x,9,1,2,3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{
		run(":memory:", "ATTACH '"+file+"' AS shop", "UPDATE shop.books SET price = 0"),
		run(file, ".mode csv", ".import "+csv+" books"),
	} {
		if !strings.Contains(out, unproven) {
			t.Errorf("%s", out)
		}
	}
	l.want(t, before...)
	copied := filepath.Join(t.TempDir(), "copy.db")
	dump := exec.CommandContext(t.Context(), "sh", "-c", `"$1" "$2" .dump | "$1" "$3"`, "sh", program, file, copied)
	if out, err := dump.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	if out := run(copied, "SELECT count(*) FROM books"); strings.TrimSpace(out) != "3" {
		t.Errorf("the copy has %s books", out)
	}
	if out := run(copied, "UPDATE books SET price = 0"); !strings.Contains(out, unproven) {
		t.Errorf("the copy: %s", out)
	}

	// A write that proves its token is like any other.
	if out := run(file, "UPDATE books SET price = 31, fence_token = -8 WHERE id = 3", "SELECT changes(), price, fence_token FROM books WHERE id = 3"); strings.TrimSpace(out) != "1|31|8" {
		t.Errorf("proven: %s", out)
	}
	if out := run(file, "UPDATE books SET fence_token = -1000000000000008 WHERE id = 3", "SELECT changes(), count(*) FROM books WHERE id = 3"); strings.TrimSpace(out) != "1|0" {
		t.Errorf("proven DELETE: %s", out)
	}
}
