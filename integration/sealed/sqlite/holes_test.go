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

// A row of another key is guarded by another token: no write replaces it, nor takes its place.
func TestReplaceOfAnotherKey(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		l := newUnsealed(t, b, plainBooks, sqlfence.Key("id"), sqlfence.Ledger())
		for name, value := range map[string]int64{"books/1": 40, "books/2": 41, "books/4": 50} {
			l.issue(t, name, value)
		}
		l.seal(t)
		for query, said := range map[string]string{
			"INSERT OR REPLACE INTO books (id, title, fence_token) VALUES (4, 'b', -50)":                                   stale,
			"INSERT OR REPLACE INTO books (title, fence_token) VALUES ('b', -50)":                                          stale,
			"UPDATE OR REPLACE books SET title = 'b', fence_token = -40 WHERE id = 1":                                      stale,
			"UPDATE OR REPLACE books SET id = 2, fence_token = -40 WHERE id = 1":                                           "changes the key",
			"UPDATE books SET id = 4, fence_token = -40 WHERE id = 1":                                                      "changes the key",
			"INSERT INTO books (id, fence_token) VALUES (1, -40) ON CONFLICT (id) DO UPDATE SET id = 9, fence_token = -40": "changes the key",
		} {
			if _, err := l.bare.Exec(query); err == nil || !strings.Contains(err.Error(), said) {
				t.Errorf("%s: %v, want %s", query, err, said)
			}
		}
		l.want(t, "1 10 a 7", "2 20 b 7", "3 30 c 0")
		l.exec(t, "INSERT OR REPLACE INTO books (id, title, fence_token) VALUES (1, 'x', -40)")
		l.want(t, "1 NULL x 40", "2 20 b 7", "3 30 c 0")
	})
}

// A write of a lock alone proves nothing, so it replaces no row, whatever its mark is.
func TestLockThatReplaces(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		for _, marks := range []string{"0), (2, NULL, 0, 0, 0)", "NULL), (2, NULL, 0, 0, NULL)", "9), (2, NULL, 0, 0, NULL)"} {
			l := newLab(t, b, "CREATE TABLE books (id integer PRIMARY KEY, editor text UNIQUE, since integer, expiry integer, fence_token integer);\n"+
				"INSERT INTO books VALUES (1, 'me', 1, 1, "+marks, sqlfence.EditLock("editor", "since", "expiry"))
			before := rows(t, l.bare, "SELECT * FROM books")
			if _, err := l.bare.Exec("UPDATE OR REPLACE books SET editor = 'me' WHERE id = 2"); err == nil || !strings.Contains(err.Error(), stale) {
				t.Errorf("%s: %v", marks, err)
			}
			l.want(t, before...)
			l.exec(t, "UPDATE books SET editor = 'you' WHERE id = 2")
		}
	})
}

// SQLite doesn't fire the trigger that deletes from within itself, unless it is told to. Then the statement fails, and no
// row stays that is marked.
func TestDeleteWithinDelete(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		l := newLab(t, b, "CREATE TABLE books (id integer PRIMARY KEY, parent integer, fence_token integer NOT NULL DEFAULT 0);\n"+
			"CREATE TRIGGER gone AFTER DELETE ON books BEGIN UPDATE books SET fence_token = OLD.fence_token WHERE parent = OLD.id; END;\n"+
			"INSERT INTO books VALUES (1, NULL, 0), (2, 1, 0), (3, 2, 0)")
		const deletes = "UPDATE books SET fence_token = -1000000000000005 WHERE id = "
		if _, err := l.bare.Exec(deletes + "1"); err == nil || !strings.Contains(err.Error(), "recursive_triggers") {
			t.Error(err)
		}
		l.want(t, "1 NULL 0", "2 1 0", "3 2 0")
		l.exec(t, deletes+"3")
		l.want(t, "1 NULL 0", "2 1 0")
		l.exec(t, "PRAGMA recursive_triggers = ON")
		l.exec(t, deletes+"1")
		l.want(t)
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
		for index, unknown := range map[string]bool{
			"(a) WHERE b = 1": false, "(a)": true, "(a) WHERE b = 2": true, "(a) WHERE \"b\" = 1": true, "(b) WHERE b = 1": true,
		} {
			l := newLab(t, b, "CREATE TABLE books (id integer PRIMARY KEY, a, b, fence_token integer);\nCREATE UNIQUE INDEX part ON books (a) WHERE b = 1")
			l.exec(t, "DROP INDEX part")
			l.exec(t, "CREATE UNIQUE INDEX part ON books "+index)
			if broken(l) != unknown {
				t.Errorf("of a part, %s: it is broken: %v", index, !unknown)
			}
		}
		for _, rule := range [][]sqlfence.Rule{{sqlfence.Key("id"), sqlfence.Ledger()}, {sqlfence.EditLock("a", "b", "c")}} {
			l := newUnsealed(t, b, "CREATE TABLE books "+table, rule...)
			l.issue(t, "books/1", 1)
			l.seal(t)
			if broken(l) {
				t.Error("a seal with other rules is broken")
			}
		}
	})
}
