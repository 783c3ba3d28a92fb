package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/schema"
)

// ledger are rules for which the token is the newest one of "books".
func ledger(t *testing.T, b harness.Base) *lab {
	l := newUnsealed(t, b, plainBooks, sqlfence.Ledger())
	l.issue(t, "books", 8)
	return l
}

// A fenced program goes on while the table is sealed, loses its seal, and is sealed again.
func TestSealComesAndGoes(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		for _, way := range []string{"row", "ledger", "transaction"} {
			t.Run(way, func(t *testing.T) {
				l := ledger(t, b)
				if way == "row" {
					l = newUnsealed(t, b, plainBooks)
				}
				for n, change := range []func(){
					func() {},
					func() { l.seal(t) },
					func() { l.seal(t) },
					func() { // by another program, unseen
						for _, name := range rows(t, l.bare, "SELECT name FROM sqlite_master WHERE type = 'trigger'") {
							l.exec(t, "DROP TRIGGER "+name)
						}
					},
					func() { l.seal(t) },
					func() {
						if err := schema.Unseal(t.Context(), l.db); err != nil {
							t.Fatal(err)
						}
					},
					func() { l.seal(t) },
				} {
					change()
					for _, query := range []string{"DELETE FROM books WHERE id = 2 RETURNING id", "INSERT INTO books (id, price, title) VALUES (2, 20, 'b') RETURNING id"} {
						var id int
						if err := l.db.QueryRowContext(holding(t, 8), query).Scan(&id); err != nil || id != 2 {
							t.Errorf("%d: %s: %d, %v", n, query, id, err)
						}
					}
					price := fmt.Sprint(100 + n)
					for _, query := range []string{
						"DELETE FROM books WHERE id = 1",
						"INSERT INTO books (id, price, title) VALUES (1, 1, 'd')",
						"UPDATE books SET price = " + price + " WHERE id = 1",
						"INSERT INTO books (id, title) VALUES (1, 'new') ON CONFLICT (id) DO UPDATE SET title = excluded.title",
					} {
						got, err := execute(holding(t, 8), l.db, query, way == "transaction")
						if err != nil {
							t.Fatalf("%d: %s: %v", n, query, err)
						}
						if got != 1 {
							t.Errorf("%d: %s: %d rows", n, query, got)
						}
						if query[0] != 'I' {
							if _, err := execute(holding(t, 6), l.db, query, false); query[0] == 'U' && !errors.Is(err, sqlfence.ErrStale) {
								t.Errorf("%d: stale %s: %v", n, query, err)
							}
						}
					}
					// Where the seal was dropped unseen, marks are negative until the next one.
					mark := strings.Replace(rows(t, l.bare, "SELECT fence_token FROM books WHERE id = 1")[0], "-", "", 1)
					if got := rows(t, l.bare, "SELECT id, price, title FROM books"); fmt.Sprint(got) != "[1 "+price+" new 2 20 b 3 30 c]" || mark != "8" {
						t.Errorf("%d: %v with %v", n, got, mark)
					}
				}
				l.want(t, "1 106 new 8", "2 20 b 8", "3 30 c 0")
			})
		}
	})
}

func execute(ctx context.Context, db *sql.DB, query string, inTx bool) (int64, error) {
	if !inTx {
		result, err := db.ExecContext(ctx, query)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	result, err := tx.ExecContext(ctx, query)
	if err != nil {
		return 0, err
	}
	if err := tx.Commit(); err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// What a sealed table refuses is the same typed error on a fenced connection.
func TestRefusalsAreTyped(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		l := ledger(t, b)
		l.seal(t)
		for query, want := range map[string]error{
			"UPDATE books SET price = 0":                                        sqlfence.ErrNoFence,
			"DELETE FROM books":                                                 sqlfence.ErrNoFence,
			"INSERT INTO books (id) VALUES (9)":                                 sqlfence.ErrNoFence,
			"UPDATE books SET price = 0, fence_token = -7":                      sqlfence.ErrStale,
			"UPDATE books SET price = 0, fence_token = -9":                      sqlfence.ErrNotIssued,
			"INSERT INTO books (id, fence_token) VALUES (9, -7)":                sqlfence.ErrStale,
			"INSERT INTO books (id, fence_token) VALUES (9, -9)":                sqlfence.ErrNotIssued,
			"UPDATE books SET fence_token = -1000000000000009":                  sqlfence.ErrNotIssued,
			"REPLACE INTO books (id, price, fence_token) VALUES (1, 0, -6)":     sqlfence.ErrStale,
			"UPDATE OR REPLACE books SET id = 2, fence_token = -7 WHERE id = 3": sqlfence.ErrStale,
		} {
			if _, err := l.db.ExecContext(sqlfence.Bypass(t.Context(), "to meet the seal"), query); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", query, err, want)
			}
		}
		l.want(t, "1 10 a 7", "2 20 b 7", "3 30 c 0")
	})
}

// With Key and Ledger each row has tokens of its own, also a new one that SQLite numbers.
func TestKeys(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		l := newUnsealed(t, b, plainBooks, sqlfence.Key("id"), sqlfence.Ledger())
		for name, value := range map[string]int64{"books/1": 8, "books/2": 9, "books/4": 3} {
			l.issue(t, name, value)
		}
		l.seal(t)
		ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/1", Value: 8}, sqlfence.Token{Name: "books/2", Value: 9}, sqlfence.Token{Name: "books/4", Value: 3})
		for _, query := range []string{
			"UPDATE books SET price = price + 1 WHERE id < 3",
			"INSERT INTO books (id, title) VALUES (4, 'd')",
			"DELETE FROM books WHERE id IN (2, 4)",
		} {
			if _, err := l.db.ExecContext(ctx, query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
		}
		l.want(t, "1 11 a 8", "3 30 c 0")
		for query, want := range map[string]string{
			"UPDATE books SET price = 0, fence_token = -9 WHERE id = 1": "not issued",
			"UPDATE books SET price = 0, fence_token = -7 WHERE id = 1": "newer",
			"UPDATE books SET price = 0, fence_token = -9 WHERE id = 3": "not issued",
			"INSERT INTO books (title, fence_token) VALUES ('e', -9)":   "not issued",
			"UPDATE books SET id = 2, fence_token = -9 WHERE id = 1":    "changes the key",
			"UPDATE books SET id = 2, fence_token = -8 WHERE id = 1":    "changes the key",
		} {
			if _, err := l.bare.Exec(query); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", query, err, want)
			}
		}
		if _, err := l.bare.Exec("INSERT INTO books (title, fence_token) VALUES ('e', -3)"); err != nil { // it is number 4
			t.Error(err)
		}
	})
}

// Seal refuses what it can't see through, and says what to do about it. The table stays as it was.
func TestTablesThatCantBeSealed(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		for script, said := range map[string]string{
			"CREATE TABLE books (id integer PRIMARY KEY, fence_token text)":                                                               "INT in its name",
			"CREATE TABLE books (id integer PRIMARY KEY, fence_token real)":                                                               "INT in its name",
			"CREATE TABLE books (id integer PRIMARY KEY, fence_token integer AS (1))":                                                     "INT in its name",
			"CREATE TABLE books (id integer PRIMARY KEY)":                                                                                 "no column fence_token",
			"CREATE TABLE books (a text NOT NULL DEFAULT \"x\" UNIQUE, fence_token integer)":                                              "in single quotes",
			"CREATE TABLE books (a text NOT NULL DEFAULT x UNIQUE, fence_token integer)":                                                  "in single quotes",
			"CREATE TABLE books (a, fence_token integer);\nCREATE TRIGGER x AFTER INSERT ON books BEGIN SELECT RAISE ( ignore ); END":     "RAISE(IGNORE)",
			"CREATE TABLE books (a, fence_token integer);\nCREATE TRIGGER x AFTER INSERT ON books BEGIN SELECT RAISE(FAIL, 'x'); END":     "RAISE(FAIL)",
			"CREATE TABLE books (a UNIQUE ON CONFLICT REPLACE, fence_token integer NOT NULL ON CONFLICT REPLACE DEFAULT 0)":               "say OR REPLACE",
			"CREATE TABLE books (a, fence_token integer);\nCREATE TRIGGER x BEFORE DELETE ON books BEGIN SELECT RAISE(FAIL, 'x'); END":    "RAISE(FAIL) none of DELETE",
			"CREATE TABLE tomes (id integer PRIMARY KEY)":                                                                                 "no such table",
			"CREATE TABLE books (id, fence_token integer UNIQUE)":                                                                         "in the unique index",
			"CREATE TABLE books (a, fence_token integer);\nCREATE UNIQUE INDEX i ON books (lower(a))":                                     "unique index i is on an expression",
			"CREATE TABLE books (rowid, oid, _rowid_, fence_token integer)":                                                               "rename the column oid",
			"CREATE TABLE t (id, fence_token integer);\nCREATE VIEW books AS SELECT * FROM t":                                             "view",
			"CREATE VIRTUAL TABLE books USING rtree(id, low, high, +fence_token integer)":                                                 "virtual",
			"CREATE TABLE books (a, fence_token integer);\nCREATE TRIGGER x AFTER UPDATE ON books BEGIN SELECT 1; END":                    "UPDATE OF column",
			"CREATE TABLE books (a, fence_token integer);\nCREATE TRIGGER x BEFORE UPDATE OF fence_token, a ON books BEGIN SELECT 1; END": "UPDATE OF column",
		} {
			l := newUnsealed(t, b, script)
			before := rows(t, l.bare, "SELECT sql FROM sqlite_master")
			err := schema.Seal(t.Context(), l.db)
			if err == nil || !strings.Contains(err.Error(), said) {
				t.Errorf("%s: %v, want %s", script, err, said)
			}
			if after := rows(t, l.bare, "SELECT sql FROM sqlite_master"); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("%s: %v", script, after)
			}
		}
	})
}

// A table that is renamed stays sealed, and one that comes in its place doesn't take its seal.
func TestRenamed(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		for _, legacy := range []string{"OFF", "ON"} {
			l := newLab(t, b, plainBooks)
			l.exec(t, "PRAGMA legacy_alter_table = "+legacy)
			l.exec(t, "ALTER TABLE books RENAME TO tomes")
			l.exec(t, "CREATE TABLE books (id integer PRIMARY KEY, fence_token integer)")
			if err := schema.Seal(t.Context(), l.db); err != nil {
				t.Error(err)
			}
			if _, err := l.bare.Exec("INSERT INTO books VALUES (8, 8)"); err == nil {
				t.Error("books have no seal")
			}
			for _, query := range []string{"UPDATE tomes SET price = 0", "DELETE FROM tomes", "REPLACE INTO tomes (id) VALUES (1)", "INSERT INTO tomes (id) VALUES (8)"} {
				if _, err := l.bare.Exec(query); err == nil {
					t.Errorf("%s has landed", query)
				}
			}
			if legacy == "OFF" {
				l.exec(t, "ALTER TABLE tomes RENAME COLUMN fence_token TO mark")
				l.exec(t, "ALTER TABLE tomes RENAME COLUMN title TO called")
				l.exec(t, "UPDATE tomes SET price = 1, mark = -8 WHERE id = 1")
			}
		}
	})
}

// Names and texts are as odd as SQLite allows.
func TestOddNames(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		dsn := b.DSN(t)
		l := &lab{Base: b, dsn: dsn, bare: b.Raw(t, dsn)}
		l.exec(t, `CREATE TABLE "it's {table} `+"`"+`x" ("the {mark}" integer, "a'b {new}" text NOT NULL DEFAULT '{stale}' UNIQUE)`)
		l.db = l.Fenced(t, dsn, sqlfence.WithTable(`"it's {table} `+"`"+`x"`, sqlfence.RowFence(`"the {mark}"`), sqlfence.Ledger(), sqlfence.Resource("{row}"), sqlfence.Sealed()))
		l.issue(t, "{row}", 3)
		l.seal(t)
		ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "{row}", Value: 3})
		const name = `"it's {table} ` + "`" + `x"`
		for _, query := range []string{
			"INSERT INTO " + name + ` ("a'b {new}") VALUES ('x'), ('y')`,
			"UPDATE " + name + ` SET "a'b {new}" = 'z' WHERE "a'b {new}" = 'x'`,
			"DELETE FROM " + name + ` WHERE "a'b {new}" = 'y'`,
		} {
			if _, err := l.db.ExecContext(ctx, query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
		}
		if _, err := l.db.ExecContext(sqlfence.Bypass(t.Context(), "to meet the seal"), "DELETE FROM "+name); !errors.Is(err, sqlfence.ErrNoFence) {
			t.Error(err)
		}
		if got := rows(t, l.bare, "SELECT * FROM "+name); fmt.Sprint(got) != "[3 z]" {
			t.Error(got)
		}
	})
}

// The other rules hold besides.
func TestOtherRules(t *testing.T) {
	const script = "CREATE TABLE books (id integer PRIMARY KEY, price integer, by integer, since integer, expiry integer, version integer NOT NULL DEFAULT 1, fence_token integer NOT NULL DEFAULT 0);\n" +
		"INSERT INTO books (id, price) VALUES (1, 10), (2, 20)"
	each(t, func(t *testing.T, b harness.Base) {
		l := newLab(t, b, script, sqlfence.Serial("version"))
		if _, err := l.db.ExecContext(sqlfence.WithSerial(holding(t, 8), 2), "DELETE FROM books WHERE id = 1"); !errors.Is(err, sqlfence.ErrConflict) {
			t.Error(err)
		}
		if _, err := l.db.ExecContext(sqlfence.WithSerial(holding(t, 8), 1), "UPDATE books SET price = 11 WHERE id = 1"); err != nil {
			t.Error(err)
		}
		if _, err := l.db.ExecContext(sqlfence.WithSerial(holding(t, 8), 2), "DELETE FROM books WHERE id = 1"); err != nil {
			t.Error(err)
		}
		if _, err := l.db.ExecContext(sqlfence.WithSerial(holding(t, 8), 2), "DELETE FROM books WHERE id = 1"); !errors.Is(err, sqlfence.ErrGone) {
			t.Error(err)
		}
		if got := fmt.Sprint(rows(t, l.bare, "SELECT id, price, version, fence_token FROM books")); got != "[2 20 1 0]" {
			t.Error(got)
		}
	})
}

// A table that is observed is sealed all the same: with a token a write lands, however old
// the token is, and else it is refused.
func TestObserved(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		l := newLab(t, b, plainBooks, sqlfence.InMode(sqlfence.Observe))
		for _, query := range []string{"UPDATE books SET price = 11 WHERE id = 1", "DELETE FROM books WHERE id = 2"} {
			if _, err := l.db.ExecContext(holding(t, 6), query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
			if _, err := l.db.ExecContext(t.Context(), strings.Replace(query, "2", "3", 1)); !errors.Is(err, sqlfence.ErrNoFence) {
				t.Errorf("%s: %v", query, err)
			}
		}
		l.want(t, "1 11 a 7", "3 30 c 0")

		for _, name := range rows(t, l.bare, "SELECT name FROM sqlite_master WHERE type = 'trigger'") {
			l.exec(t, "DROP TRIGGER "+name)
		}
		if _, err := l.db.ExecContext(holding(t, 6), "DELETE FROM books WHERE id = 3"); err != nil {
			t.Error(err)
		}
		l.want(t, "1 11 a 7")
	})
}

// A text of several statements is never sent twice, as the first of them may have been applied.
func TestSeveralStatements(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		l := newUnsealed(t, b, plainBooks+";\nCREATE TABLE counted (n integer);\nINSERT INTO counted VALUES (0)")
		const query = "UPDATE counted SET n = n + 1; DELETE FROM books WHERE id = 1; UPDATE books SET price = price + 1 WHERE id = 2"
		if _, err := l.db.ExecContext(holding(t, 8), query); err != nil {
			t.Fatal(err)
		}
		if err := schema.Seal(t.Context(), l.Fenced(t, l.dsn, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Sealed()))); err != nil {
			t.Fatal(err)
		}
		counted := "1"
		for range 2 {
			_, err := l.db.ExecContext(holding(t, 8), query)
			before := counted
			counted = rows(t, l.bare, "SELECT n FROM counted")[0]
			t.Log(before, counted, err)
		}
		if counted != "3" {
			t.Errorf("counted %s", counted)
		}
		l.want(t, "2 22 b 8", "3 30 c 0")
	})
}
