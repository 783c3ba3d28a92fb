package sealed_test

import (
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Seal refuses tables in which MySQL's triggers wouldn't see some changes.
func TestObstacles(t *testing.T) {
	for change, want := range map[string]string{
		"ALTER TABLE books ADD FOREIGN KEY (author) REFERENCES authors (id) ON DELETE CASCADE":                      "by a cascade",
		"ALTER TABLE books ADD FOREIGN KEY (author) REFERENCES authors (id) ON UPDATE SET NULL":                     "by a cascade",
		"ALTER TABLE books MODIFY fence_token bigint unsigned NOT NULL DEFAULT 0":                                   "unsigned, want bigint",
		"ALTER TABLE books MODIFY fence_token int NOT NULL DEFAULT 0":                                               "want bigint",
		"ALTER TABLE books ENGINE = MyISAM":                                                                         "want InnoDB",
		"ALTER TABLE books ADD FOREIGN KEY (author) REFERENCES authors (id) ON DELETE RESTRICT ON UPDATE NO ACTION": "",
	} {
		l := newUnsealed(t, harness.MySQL)
		l.exec(t, change)
		err := schema.Seal(t.Context(), l.db)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
}

// A table of another database than the connection's can be sealed.
func TestAnotherDatabase(t *testing.T) {
	l := newUnsealed(t, harness.MySQL)
	name := "other_" + l.unique
	l.exec(t, "CREATE DATABASE "+name)
	defer l.exec(t, "DROP DATABASE "+name)
	l.exec(t, "CREATE TABLE "+name+".books (id integer PRIMARY KEY, price integer, fence_token bigint NOT NULL DEFAULT 0)")
	db := l.Fenced(t, l.dsn, sqlfence.WithTable(name+".books", sqlfence.Resource("books"), sqlfence.RowFence("fence_token"), sqlfence.Sealed()))
	if err := schema.Seal(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := l.plain.Exec("INSERT INTO " + name + ".books (id) VALUES (1)"); err == nil {
		t.Error("no error")
	}
	for _, query := range []string{"INSERT INTO %.books (id) VALUES (1)", "UPDATE %.books SET price = 1", "DELETE FROM %.books"} {
		if _, err := db.ExecContext(holding(t, 7), strings.ReplaceAll(query, "%", name)); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// The seal of a table in another database reads the session's ledger, as guards do.
func TestLedgerBesideAnotherDatabase(t *testing.T) {
	l := newUnsealed(t, harness.MySQL, sqlfence.Ledger())
	name := "other_" + l.unique
	l.exec(t, "CREATE DATABASE "+name)
	defer l.exec(t, "DROP DATABASE "+name)
	l.exec(t, "CREATE TABLE "+name+".books (id integer PRIMARY KEY, price integer, fence_token bigint NOT NULL DEFAULT 0)")
	db := l.Fenced(t, l.dsn, sqlfence.WithTable(name+".books", append(l.rules, sqlfence.Resource("books"))...))
	if err := schema.Seal(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"INSERT INTO %.books (id) VALUES (1)", "UPDATE %.books SET price = 1", "DELETE FROM %.books"} {
		if _, err := db.ExecContext(holding(t, 7), strings.ReplaceAll(query, "%", name)); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	if _, err := l.plain.Exec("INSERT INTO " + name + ".books VALUES (1, 1, -6)"); err == nil || !strings.Contains(err.Error(), "stale token 6 for table books, which has 7") {
		t.Errorf("a stale token: %v", err)
	}
	l.exec(t, "DROP TABLE fencing_tokens")
	if err := schema.Seal(t.Context(), db); err == nil || !strings.Contains(err.Error(), "no table fencing_tokens") {
		t.Errorf("without a ledger: %v", err)
	}
}

// A guarded DELETE presents its token in every form and in every sql_mode. MySQL doesn't evaluate IS NOT NULL of an
// expression that can't be NULL, and whether an expression can be NULL depends on the mode.
func TestEachDeleteProvesItsToken(t *testing.T) {
	l := newUnsealed(t, harness.MySQL)
	l.exec(t, "CREATE TABLE pens (id integer PRIMARY KEY)")
	l.exec(t, "INSERT INTO pens VALUES (1)")
	l.exec(t, "DELETE FROM books")
	l.seal(t)
	conn, err := l.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, mode := range []string{"", "STRICT_ALL_TABLES", "TRADITIONAL", "ANSI"} {
		if _, err := conn.ExecContext(t.Context(), "SET sql_mode = '"+mode+"'"); err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{
			"DELETE FROM books",
			"DELETE FROM books WHERE id = 1",
			"DELETE FROM books WHERE id > 0 ORDER BY id LIMIT 1",
			"DELETE b FROM books b JOIN pens p ON p.id = b.id",
			"DELETE FROM b USING books b, pens p WHERE p.id = b.id",
		} {
			if _, err := conn.ExecContext(holding(t, 7), "INSERT INTO books (id) VALUES (1)"); err != nil {
				t.Fatal(err)
			}
			_, err := conn.ExecContext(holding(t, 6), query)
			harness.WantStale(t, err, 6, 7)
			if _, err := conn.ExecContext(holding(t, 8), query); err != nil || l.books(t) != "" {
				t.Fatalf("sql_mode '%s': %s: %v, %s", mode, query, err, l.books(t))
			}
		}
	}
}

// If Seal is interrupted, the table accepts no write that the seal must refuse. The next Seal completes the seal.
func TestInterruptedSeal(t *testing.T) {
	l := newLab(t, harness.MySQL)
	plans, err := schema.SealPlan(t.Context(), l.db)
	if err != nil {
		t.Fatal(err)
	}
	for n := range plans[0].Statements {
		plans, err := schema.SealPlan(t.Context(), l.db)
		if err != nil {
			t.Fatal(err)
		}
		l.interrupted(t, plans[0].Statements[:n])
		for _, query := range []string{"UPDATE books SET price = 99", "INSERT INTO books (id, fence_token) VALUES (9, 8)", "DELETE FROM books", "UPDATE books SET price = 99, fence_token = -3 WHERE id = 1"} {
			if _, err := l.plain.Exec(query); err == nil || !strings.Contains(err.Error(), "sqlfence: ") {
				t.Fatalf("behind %s: %s: %v", strings.Join(plans[0].Statements[:n], "; "), query, err)
			}
		}
		found := l.broken(t)
		_, err = l.db.ExecContext(holding(t, 7), "UPDATE books SET price = 11 WHERE id = 1")
		if err != nil && len(found) == 0 {
			t.Errorf("behind %d statements: %v, and verify.Check finds %v", n, err, found)
		}
		if n%4 == 0 {
			continue // the next round starts from this state
		}
		l.seal(t)
		if found := l.broken(t); len(found) > 0 {
			t.Errorf("found %v", found)
		}
		l.fenced(t)
	}
	l.seal(t)
	l.fenced(t)
}

// If an Unseal stops halfway, the table stores no negative tokens: it refuses them, or all writes. The next Unseal
// completes it.
func TestInterruptedUnseal(t *testing.T) {
	l := newLab(t, harness.MySQL)
	plans, err := schema.UnsealPlan(t.Context(), l.db)
	if err != nil {
		t.Fatal(err)
	}
	for n := range plans[0].Statements {
		l.seal(t)
		l.fenced(t)
		if plans, err = schema.UnsealPlan(t.Context(), l.db); err != nil {
			t.Fatal(err)
		}
		l.interrupted(t, plans[0].Statements[:n])
		if _, err := l.db.ExecContext(holding(t, 7), "UPDATE books SET price = 11 WHERE id = 1"); err != nil && len(l.broken(t)) == 0 {
			t.Errorf("behind %d statements: %v, and verify.Check finds nothing", n, err)
		}
		for _, query := range []string{"UPDATE books SET fence_token = -7", "INSERT INTO books (id, fence_token) VALUES (9, -7)"} {
			_, _ = l.plain.Exec(query)
			if books := l.books(t); strings.Contains(books, "@-") {
				t.Fatalf("behind %d statements: %s: books are %s", n, query, books)
			}
		}
		if err := schema.Unseal(t.Context(), l.db); err != nil {
			t.Fatal(err)
		}
		l.fenced(t)
		l.exec(t, "UPDATE books SET price = 12")
	}
}

// interrupted runs statements on a connection and closes the connection.
func (l *lab) interrupted(t *testing.T, statements []string) {
	t.Helper()
	conn, err := l.plain.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range statements {
		if _, err := conn.ExecContext(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	harness.Eventually(t, "the lock is gone", func() bool {
		_, err := l.plain.Exec("SET STATEMENT lock_wait_timeout = 1 FOR SELECT COUNT(*) FROM books FOR UPDATE")
		if err != nil && strings.Contains(err.Error(), "1064") { // MySQL
			_, err = l.plain.Exec("SELECT COUNT(*) FROM books FOR UPDATE")
		}
		return err == nil
	})
}

// fenced writes in each way with the newest token, and checks that no stored token is negative.
func (l *lab) fenced(t *testing.T) {
	t.Helper()
	for _, query := range []string{"INSERT INTO books (id) VALUES (5)", "UPDATE books SET price = 11 WHERE id = 5", "DELETE FROM books WHERE id = 5"} {
		if _, err := l.db.ExecContext(holding(t, 7), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		if books := l.books(t); strings.Contains(books, "-") {
			t.Fatalf("%s: books are %s", query, books)
		}
	}
}
