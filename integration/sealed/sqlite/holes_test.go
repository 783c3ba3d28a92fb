package sqlite_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
)

// What else makes a REPLACE delete a row: a write that brings the row into a partial index without changing its
// columns, and a trigger of the table that writes the row again under the statement's OR REPLACE.
func TestReplaceByOtherMeans(t *testing.T) {
	for name, c := range map[string]struct {
		script  string
		attacks []string
	}{
		"partial index": {
			"CREATE TABLE books (id integer PRIMARY KEY, a, \"is \"\"on\"\"\" integer, fence_token integer NOT NULL DEFAULT 0);\n" +
				"CREATE UNIQUE INDEX part ON books (a) WHERE \"is \"\"on\"\"\" = 1;\n" +
				"INSERT INTO books VALUES (1, 'x', 1, 7), (3, 'x', 0, 0)",
			[]string{`UPDATE OR REPLACE books SET "is ""on""" = 1, fence_token = -6 WHERE id = 3`},
		},
		"partial index by number": {
			"CREATE TABLE books (id integer PRIMARY KEY, a, fence_token integer NOT NULL DEFAULT 0);\n" +
				"CREATE UNIQUE INDEX part ON books (a) WHERE rowid > 0;\n" +
				"INSERT INTO books VALUES (1, 'x', 7), (-3, 'x', 0)",
			[]string{"UPDATE OR REPLACE books SET id = 3, fence_token = -6 WHERE id = -3"},
		},
		"generated column": {
			"CREATE TABLE books (id integer PRIMARY KEY, a, b, c AS (a || b) UNIQUE, fence_token integer NOT NULL DEFAULT 0);\n" +
				"INSERT INTO books VALUES (1, 'x', 'y', 7), (3, 'z', 'y', 0)",
			[]string{"UPDATE OR REPLACE books SET a = 'x', fence_token = -6 WHERE id = 3"},
		},
		"partial index by a generated column": {
			"CREATE TABLE books (id integer PRIMARY KEY, a, b, c AS (b || a) STORED, fence_token integer NOT NULL DEFAULT 0);\n" +
				"CREATE UNIQUE INDEX part ON books (b) WHERE c = 'yx';\n" +
				"INSERT INTO books VALUES (1, 'x', 'y', 7), (3, 'z', 'y', 0)",
			[]string{"UPDATE OR REPLACE books SET a = 'x', fence_token = -6 WHERE id = 3"},
		},
		"trigger": {
			"CREATE TABLE books (id integer PRIMARY KEY, title, slug UNIQUE, fence_token integer NOT NULL DEFAULT 0);\n" +
				"INSERT INTO books VALUES (1, 'A', 'a', 7), (3, 'C', 'c', 0);\n" +
				"CREATE TRIGGER slugs AFTER INSERT ON books BEGIN UPDATE books SET slug = lower(title) WHERE id = NEW.id; END;\n" +
				"CREATE TRIGGER slugs2 AFTER UPDATE OF title ON books BEGIN UPDATE books SET slug = lower(title) WHERE id = NEW.id; END",
			[]string{
				"INSERT OR REPLACE INTO books (id, title, fence_token) VALUES (9, 'A', -6)",
				"UPDATE OR REPLACE books SET title = 'A', fence_token = -6 WHERE id = 3",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, b harness.Base) {
				for _, attack := range c.attacks {
					l := newLab(t, b, c.script)
					before := rows(t, l.bare, "SELECT * FROM books ORDER BY 1")
					if _, err := l.bare.Exec(attack); err == nil || !strings.Contains(err.Error(), stale) {
						t.Errorf("%s: %v, want %s", attack, err, stale)
					}
					l.want(t, before...)
					if _, err := l.bare.Exec(strings.Replace(attack, "-6", "-7", 1)); err != nil {
						t.Errorf("%s with 7: %v", attack, err)
					}
					if got := rows(t, l.bare, "SELECT id FROM books WHERE id = 1 OR fence_token < 0"); len(got) > 0 {
						t.Errorf("%s with 7: rows %v are there", attack, got)
					}
				}
			})
		})
	}
}

// Several triggers of a table may write the row again, each of them as often as it likes.
func TestTriggersThatWriteAgain(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		l := newLab(t, b, "CREATE TABLE books (id integer PRIMARY KEY, a DEFAULT 0, b DEFAULT 0, title, fence_token integer NOT NULL DEFAULT 0);\n"+
			"CREATE TRIGGER first AFTER INSERT ON books BEGIN UPDATE books SET a = a + 1 WHERE id = NEW.id; UPDATE books SET a = a + 10 WHERE id = NEW.id; END;\n"+
			"CREATE TRIGGER second AFTER INSERT ON books BEGIN UPDATE books SET b = b + 1 WHERE id = NEW.id; END;\n"+
			"CREATE TRIGGER third AFTER UPDATE OF title ON books BEGIN UPDATE books SET a = a + 1 WHERE id = NEW.id; UPDATE books SET b = b + 1 WHERE id = NEW.id; END;\n"+
			"CREATE TRIGGER fourth AFTER UPDATE OF title ON books BEGIN UPDATE books SET a = a + 100 WHERE id = NEW.id; END;\n"+
			"CREATE TRIGGER renames AFTER UPDATE OF title ON books WHEN NEW.title = 'renamed' BEGIN UPDATE books SET id = 7 WHERE id = NEW.id; END")
		for n, c := range []struct{ query, row string }{
			{"INSERT INTO books (id, title) VALUES (1, 'a')", "1 11 1 a 8"},
			{"UPDATE books SET title = 'b' WHERE id = 1", "1 112 2 b 8"},
			{"UPDATE books SET title = 'renamed' WHERE id = 1", "7 112 2 renamed 8"},
		} {
			if _, err := l.db.ExecContext(holding(t, 8), c.query); err != nil {
				t.Errorf("%d: %v", n, err)
			}
			l.want(t, c.row)
		}
	})
}

// A DELETE trigger may pass the token on to other rows.
func TestDeleteTriggerThatProves(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		l := newLab(t, b, plainBooks+";\nCREATE TRIGGER closes AFTER DELETE ON books BEGIN UPDATE books SET price = price - 1, fence_token = OLD.fence_token % 1000000000000000 WHERE id > OLD.id; END")
		if _, err := l.db.ExecContext(holding(t, 8), "DELETE FROM books WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		l.want(t, "2 19 b 8", "3 29 c 8")
	})
}

// Verify finds out when a seal doesn't know of a unique index, however like it is to one that it knows.
func TestVerifyOfUniqueIndexes(t *testing.T) {
	const table = "(id integer PRIMARY KEY, a, b, c, fence_token integer NOT NULL DEFAULT 0, UNIQUE (a, b), UNIQUE (c))"
	broken := func(l *lab) bool {
		t.Helper()
		found, err := sqlfence.Verify(t.Context(), l.db)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(found, func(f sqlfence.Finding) bool { return f.Code == "seal-broken" })
	}
	each(t, func(t *testing.T, b harness.Base) {
		for name, shape := range shapes {
			if broken(newLab(t, b, "CREATE TABLE books "+shape)) {
				t.Errorf("%s: it is broken", name)
			}
		}
		for index, unknown := range map[string]bool{
			"(a)": true, "(b, id)": true, "(lower(c))": true, "(c COLLATE NOCASE)": true, "(a) WHERE b = 1": true,
			"(a, b)": false, "(b, a)": false, "(c, a)": true, "(c) WHERE b = 1": false,
		} {
			l := newLab(t, b, "CREATE TABLE books "+table)
			l.exec(t, "CREATE UNIQUE INDEX new ON books "+index)
			if broken(l) != unknown {
				t.Errorf("%s: it is broken: %v", index, !unknown)
			}
		}
	})
}
