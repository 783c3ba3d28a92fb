package sealed_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A write that presents a valid token but doesn't increase the row's version is refused, because a holder of this
// version would then overwrite the write unnoticed.
func TestSerialIsRaised(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		l := newUnsealed(t, b)
		l.exec(t, "ALTER TABLE books ADD COLUMN version bigint")
		l.exec(t, "UPDATE books SET version = 3 WHERE id = 1")
		l.rules = append(l.rules, sqlfence.Serial("version", sqlfence.Required()))
		l.db = l.open(t)
		l.seal(t)
		for _, query := range []string{
			"UPDATE books SET price = 99, fence_token = -7 WHERE id = 1",
			"UPDATE books SET price = 99, fence_token = -7, version = 3 WHERE id = 1",
			"UPDATE books SET price = 99, fence_token = -7, version = 1 WHERE id = 1",
			"UPDATE books SET price = 99, fence_token = -7, version = NULL WHERE id = 1",
			"UPDATE books SET price = 99, fence_token = -7 WHERE id = 2", // a row whose version is NULL
		} {
			l.refused(t, query, "raise the serial")
		}
		l.want(t, "1:10@7 2:10@7 3:10@0")
		if _, err := l.db.ExecContext(sqlfence.Bypass(t.Context(), "by hand"), "UPDATE books SET price = 99, fence_token = -7 WHERE id = 1"); !errors.Is(err, sqlfence.ErrNoSerial) {
			t.Errorf("under Bypass: %v", err)
		}
		l.exec(t, "UPDATE books SET price = 20, fence_token = -8, version = version + 1 WHERE id = 1")
		if _, err := l.db.ExecContext(sqlfence.WithSerial(holding(t, 8), 3), "UPDATE books SET price = 30 WHERE id = 1"); !errors.Is(err, sqlfence.ErrConflict) {
			t.Errorf("over the bare write: %v", err)
		}
		for _, test := range []struct {
			serial int64
			query  string
		}{
			{4, "UPDATE books SET price = 30 WHERE id = 1"},
			{0, "UPDATE books SET price = 30 WHERE id = 2"},
			{0, "INSERT INTO books (id) VALUES (4)"},
			{1, "UPDATE books SET price = 30 WHERE id = 4"},
			{5, "DELETE FROM books WHERE id = 1"},
		} {
			if _, err := l.db.ExecContext(sqlfence.WithSerial(holding(t, 9), test.serial), test.query); err != nil {
				t.Errorf("%s: %v", test.query, err)
			}
		}
		l.want(t, "2:30@9 3:10@0 4:30@9")
	})
}

// A user's value never makes a program believe that the table is sealed.
func TestTextsOfASealInAValue(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		l := newUnsealed(t, b)
		l.exec(t, "ALTER TABLE books ADD COLUMN title varchar(200) UNIQUE")
		l.db.SetMaxOpenConns(1)
		for _, text := range []string{
			"sqlfence: table books is sealed: ", "sqlfence: table books is sealed: the write carries no fencing token (SQLSTATE FT001)",
			"sqlfence: stale token 7 for table books, which has 9", "sqlfence: token 12 for table books is not issued, the newest is 9",
			`violates check constraint "sqlfence_mark"`, "Error 51001 (45000): sqlfence: table books is sealed: ",
		} {
			l.exec(t, "UPDATE books SET title = NULL")
			l.exec(t, "UPDATE books SET title = '"+strings.ReplaceAll(text, "'", "''")+"' WHERE id = 3")
			for _, query := range []string{"UPDATE books SET title = {1} WHERE id = {2}", "UPDATE books SET price = {1} WHERE id = {2}"} {
				_, err := l.db.ExecContext(holding(t, 9), placeholders(l, query), text, 1)
				var temporary interface{ Temporary() bool }
				switch {
				case err == nil:
					t.Errorf("%s with %s: no error", query, text)
				case errors.Is(err, sqlfence.ErrStale), errors.Is(err, sqlfence.ErrNoFence), errors.Is(err, sqlfence.ErrNotIssued):
					t.Errorf("%s with %s: %v", query, text, err)
				case errors.As(err, &temporary) && temporary.Temporary():
					t.Errorf("%s with %s is temporary: %v", query, text, err)
				}
			}
			if _, err := l.db.ExecContext(holding(t, 9), "UPDATE books SET price = 11 WHERE id = 1"); err != nil {
				t.Error(err)
			}
			l.want(t, "1:11@9 2:10@7 3:10@0")
		}
		if b.Dialect == sqlfence.Postgres { // in a transaction as well, which the error ends
			tx := harness.Begin(t.Context(), t, l.db, 0)
			_, err := tx.ExecContext(holding(t, 9), "UPDATE books SET price = $1 WHERE id = $2", `sqlfence: table books is sealed: `, 1)
			if err == nil || errors.Is(err, sqlfence.ErrNoFence) {
				t.Error(err)
			}
			_ = tx.Rollback()
		}
	})
}

// A statement on tables of two databases is checked against the ledgers of both.
func TestTwoLedgersInOneStatement(t *testing.T) {
	l := newLab(t, harness.MySQL, sqlfence.Ledger())
	other := newLab(t, harness.MySQL, sqlfence.Ledger())
	var home string
	if err := other.plain.QueryRow("SELECT DATABASE()").Scan(&home); err != nil {
		t.Fatal(err)
	}
	other.exec(t, "UPDATE books SET price = 10, fence_token = -7")
	other.exec(t, "UPDATE fencing_tokens SET token = 9 WHERE name = 'books'")
	for _, order := range []string{"books AS a STRAIGHT_JOIN " + home + ".books AS b", home + ".books AS b STRAIGHT_JOIN books AS a"} {
		l.refused(t, "UPDATE "+order+" ON b.id = a.id SET a.price = 99, a.fence_token = -7, b.price = 99, b.fence_token = -7", "stale token 7 for table books, which has 9")
	}
	other.want(t, "1:10@7 2:10@7 3:10@7")
}

// If a first Seal stops between its triggers, the table accepts no writes, and has no negative stored token.
func TestFirstSealInterrupted(t *testing.T) {
	l := newUnsealed(t, harness.MySQL)
	plans, err := schema.SealSQL(l.db)
	if err != nil {
		t.Fatal(err)
	}
	statements := plans[0].Statements
	for stop := range statements {
		if !strings.HasPrefix(statements[stop], "CREATE TRIGGER") {
			continue
		}
		conn, err := l.plain.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range append(statements[:stop+1:stop+1], "UNLOCK TABLES") {
			if _, err := conn.ExecContext(t.Context(), query); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
		}
		_ = conn.Close()
		_, _ = l.plain.Exec("UPDATE books SET price = 20, fence_token = -9")
		_, _ = l.plain.Exec("INSERT INTO books (id, fence_token) VALUES (9, -9)")
		if books := l.books(t); strings.Contains(books, "@-") {
			if strings.Contains(statements[stop], "`sqlfence-seal:") { // before the first of them the table isn't sealed
				t.Errorf("behind %s: %s", statements[stop], books)
			}
		}
		l.exec(t, "DROP TABLE books")
		l.exec(t, "CREATE TABLE books (id integer PRIMARY KEY, price integer NOT NULL DEFAULT 10, author integer, fence_token bigint NOT NULL DEFAULT 0)")
		l.exec(t, "INSERT INTO books (id, fence_token) VALUES (1, 7), (2, 7), (3, 0)")
	}
}

// With partitions, Key and Ledger: an INSERT without a token doesn't pass as a part of a row's move between partitions,
// after an UPDATE and a DELETE in the same WITH.
func TestInsertBehindAMove(t *testing.T) {
	for _, b := range harness.Chosen(postgres) {
		t.Run(b.Name, func(t *testing.T) {
			l := newUnsealed(t, b)
			l.exec(t, "CREATE TABLE pages (id integer, shelf integer, price integer, fence_token bigint NOT NULL DEFAULT 0) PARTITION BY LIST (shelf)")
			l.exec(t, "CREATE TABLE pages_one PARTITION OF pages FOR VALUES IN (1); CREATE TABLE pages_two PARTITION OF pages FOR VALUES IN (2)")
			l.exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ('pages/1', 5), ('pages/2', 5), ('pages/4', 5), ('pages/3', 9)")
			l.exec(t, "INSERT INTO pages (id, shelf, price) VALUES (1, 1, 10), (2, 1, 10), (4, 1, 10)")
			rules := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sealed(b), sqlfence.Key("id"), sqlfence.Ledger()}
			db := l.Fenced(t, l.dsn, sqlfence.WithTable("pages", rules...))
			if err := schema.Seal(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			// The UPDATE presents a token, and the DELETE after it in the same statement uses this token, too.
			l.refused(t, `WITH d AS (DELETE FROM pages WHERE id IN (2, 4) AND set_config('sqlfence.delete_pages', '5', true) IS NOT NULL RETURNING id),
	u AS (UPDATE pages SET price = 20, fence_token = -5 WHERE id = 1 RETURNING id)
INSERT INTO pages (id, shelf, price, fence_token) SELECT 3, 2, 99, 5 FROM d LEFT JOIN u ON true WHERE COALESCE(u.id, 0) + d.id = 5`, "table pages is sealed")
			l.exec(t, "UPDATE pages SET shelf = 2, price = 30, fence_token = -5 WHERE id = 1") // a move succeeds
			var rows string
			if err := l.plain.QueryRow("SELECT string_agg(concat(id, ':', shelf, ':', price, '@', fence_token), ' ' ORDER BY id) FROM pages").Scan(&rows); err != nil || rows != "1:2:30@5 2:1:10@0 4:1:10@0" {
				t.Errorf("%s, %v", rows, err)
			}
		})
	}
}

// A tree of rows: a trigger that deletes other rows of the table uses up the token that the firing DELETE has
// presented, so this DELETE is refused. A cascade within the table uses the same token.
func TestTreeOfRows(t *testing.T) {
	for _, b := range harness.Chosen(postgres) {
		t.Run(b.Name, func(t *testing.T) {
			l := newLab(t, b)
			l.exec(t, "CREATE FUNCTION prune() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DELETE FROM books WHERE author = OLD.id; RETURN OLD; END'")
			l.exec(t, "CREATE TRIGGER prune BEFORE DELETE ON books FOR EACH ROW EXECUTE FUNCTION prune()")
			if _, err := l.db.ExecContext(holding(t, 7), "DELETE FROM books WHERE id = 1"); !errors.Is(err, sqlfence.ErrNoFence) {
				t.Errorf("with a trigger: %v", err)
			}
			l.exec(t, "DROP TRIGGER prune ON books; ALTER TABLE books ADD FOREIGN KEY (author) REFERENCES books (id) ON DELETE CASCADE")
			l.exec(t, "UPDATE books SET author = 1, fence_token = -7 WHERE id = 2")
			if _, err := l.db.ExecContext(holding(t, 7), "DELETE FROM books WHERE id = 1"); err != nil {
				t.Errorf("with a cascade: %v", err)
			}
			l.want(t, "3:10@0")
		})
	}
}

// The seal reads the ledger of WithSchema's schema, as guards do.
func TestLedgerOfASchema(t *testing.T) {
	for _, b := range []harness.Base{bases[1], harness.MySQL} {
		t.Run(b.Name, func(t *testing.T) {
			l := newUnsealed(t, b, sqlfence.Ledger())
			own := "own_" + l.unique
			l.exec(t, "CREATE SCHEMA "+own)
			defer l.exec(t, map[sqlfence.Dialect]string{sqlfence.Postgres: "DROP SCHEMA " + own + " CASCADE", sqlfence.MySQL: "DROP DATABASE " + own}[b.Dialect])
			l.exec(t, "CREATE TABLE "+own+".fencing_tokens (name varchar(100) PRIMARY KEY, token bigint NOT NULL)")
			l.exec(t, "INSERT INTO "+own+".fencing_tokens (name, token) VALUES ('books', 9)")
			db := l.Fenced(t, l.dsn, sqlfence.WithTable("books", l.rules...), sqlfence.WithSchema(own))
			if b.AsksByFunction() {
				if err := harness.NewStore(t, db).Setup(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := schema.Seal(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			l.refused(t, "UPDATE books SET price = 99, fence_token = -7 WHERE id = 1", "stale token 7 for table books, which has 9")
			if _, err := db.ExecContext(holding(t, 9), "UPDATE books SET price = 20 WHERE id = 1"); err != nil {
				t.Error(err)
			}
			found, err := harness.Verify(t.Context(), db)
			for _, f := range found {
				if f.Code == "wrong-seal" {
					t.Error(f)
				}
			}
			if err != nil {
				t.Error(err)
			}
			l.want(t, "1:20@9 2:10@7 3:10@0")
		})
	}
}
