package sealed_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// refused checks that the bare driver's statement is refused with this message.
func (l *lab) refused(t testing.TB, query, says string) {
	t.Helper()
	if _, err := l.plain.ExecContext(t.Context(), query); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v, want %q in it", query, err, says)
	}
}

// A seal checks the ledger that existed when the table was sealed, whatever the search_path of the writing session.
func TestLedgerOfTheSeal(t *testing.T) {
	l := newLab(t, harness.Bases[1], sqlfence.Ledger())
	var home string
	if err := l.plain.QueryRow("SELECT current_schema()").Scan(&home); err != nil {
		t.Fatal(err)
	}
	l.exec(t, "CREATE SCHEMA other_"+l.unique)
	l.exec(t, "CREATE TABLE other_"+l.unique+".fencing_tokens AS SELECT 'books' AS name, 3::bigint AS token")
	l.plain.SetMaxOpenConns(1)
	l.exec(t, "SET search_path = other_"+l.unique)
	l.refused(t, "UPDATE "+home+".books SET price = 99, fence_token = -3 WHERE id = 3", "stale token 3")
	l.exec(t, "UPDATE "+home+".books SET price = 20, fence_token = -7 WHERE id = 3")
	l.exec(t, "SET search_path = pg_catalog")
	l.exec(t, "DELETE FROM "+home+".books WHERE id = 2 AND set_config('sqlfence.delete_books', '7', true) IS NOT NULL")
	l.exec(t, "SET search_path = "+home)
	l.want(t, "1:10@7 3:20@7")

	l.exec(t, "SET search_path = other_"+l.unique)
	l.exec(t, "CREATE TABLE books AS SELECT 1 AS id, 10 AS price, 0::bigint AS fence_token; UPDATE fencing_tokens SET token = 9")
	plans, err := schema.SealSQL(l.db)
	if err != nil {
		t.Fatal(err)
	}
	statements := plans[0].Statements
	for _, query := range statements {
		l.exec(t, query)
	}
	l.refused(t, "UPDATE "+home+".books SET price = 30, fence_token = -7 WHERE id = 3; UPDATE books SET price = 99, fence_token = -7", "stale token 7 for table books, which has 9")
}

// With the token of another key a row can't be moved out of the scope of its token.
func TestChangedKey(t *testing.T) {
	for _, b := range harness.Chosen(bases[:3]) {
		t.Run(b.Name, func(t *testing.T) {
			l := newLab(t, b, sqlfence.Key("id"), sqlfence.Ledger())
			l.exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ('books/3', 7), ('books/9', 5)")
			l.refused(t, "UPDATE books SET id = 9, price = 99, fence_token = -5 WHERE id = 3", "changing ")
			l.refused(t, "UPDATE books SET price = 99, fence_token = -5 WHERE id = 3", "stale token 5")
			l.exec(t, "UPDATE books SET id = 3, price = 20, fence_token = -7 WHERE id = 3")
			l.want(t, "1:10@7 2:10@7 3:20@7")
		})
	}
}

// A program catches a refusal that was thrown under the ledger's lock. The next write is refused, too.
func TestRefusedTwice(t *testing.T) {
	l := newLab(t, harness.MySQL, sqlfence.Ledger())
	l.exec(t, "UPDATE fencing_tokens SET token = 8 WHERE name = 'books'")
	l.exec(t, `CREATE FUNCTION twice() RETURNS int DETERMINISTIC MODIFIES SQL DATA BEGIN
		DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
		UPDATE books SET price = 98, fence_token = -7 WHERE id = 1;
		UPDATE books SET price = 99, fence_token = -7 WHERE id = 1;
		RETURN 1;
	END`)
	l.exec(t, "DO twice()")
	l.want(t, "1:10@7 2:10@7 3:10@0")
}

// A renamed table is sealed again under its new name, without a second set of triggers.
func TestRename(t *testing.T) {
	for _, b := range harness.Chosen(bases[:3]) {
		t.Run(b.Name, func(t *testing.T) {
			l := newLab(t, b)
			l.exec(t, "ALTER TABLE books RENAME TO volumes")
			db := l.Fenced(t, l.dsn, sqlfence.WithTable("volumes", sqlfence.Resource("books"), sqlfence.RowFence("fence_token"), sqlfence.Sealed()))
			for range 2 {
				if err := schema.Seal(t.Context(), db); err != nil {
					t.Fatal(err)
				}
				for _, query := range []string{"UPDATE volumes SET price = 20 WHERE id = 1", "INSERT INTO volumes (id) VALUES (9)", "DELETE FROM volumes WHERE id = 9"} {
					if _, err := db.ExecContext(holding(t, 7), query); err != nil {
						t.Errorf("%s: %v", query, err)
					}
				}
				l.refused(t, "UPDATE volumes SET price = 99", "table volumes is sealed")
				l.refused(t, "DELETE FROM volumes", "table volumes is sealed")
			}
			if err := schema.Unseal(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			l.exec(t, "UPDATE volumes SET price = 30, fence_token = 8 WHERE id = 1")
			l.refused(t, "UPDATE volumes SET price = 30, fence_token = -8 WHERE id = 1", "sqlfence_mark")
			l.exec(t, "ALTER TABLE volumes RENAME TO books")
			l.want(t, "1:30@8 2:10@7 3:10@0")
		})
	}
}

// A sealed table's parent is unsealed. Statements on the parent are refused, even after a DELETE with a token in the
// same transaction.
func TestUnsealedParent(t *testing.T) {
	const proven = "BEGIN; DELETE FROM books WHERE id = 99 AND set_config('sqlfence.delete_books', '7', true) IS NOT NULL; "
	l := newUnsealed(t, harness.Bases[1])
	l.exec(t, "CREATE TABLE items (id integer, fence_token bigint NOT NULL DEFAULT 0)")
	l.seal(t)
	l.exec(t, "ALTER TABLE books ALTER id SET NOT NULL, INHERIT items")
	l.seal(t)
	l.plain.SetMaxOpenConns(1)
	for range 2 {
		l.refused(t, proven+"DELETE FROM items WHERE id = 1", unproven)
		l.exec(t, "ROLLBACK")
		l.seal(t)
	}
	l.want(t, "1:10@7 2:10@7 3:10@0")
}

// A separately sealed partition can be sealed with its parent.
func TestSealedPartition(t *testing.T) {
	l := newUnsealed(t, harness.Bases[1])
	l.exec(t, `CREATE TABLE parts (id integer, fence_token bigint NOT NULL DEFAULT 0) PARTITION BY LIST (id);
		CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN (1);
		CREATE TABLE parts_b PARTITION OF parts FOR VALUES IN (2);
		INSERT INTO parts VALUES (1, 7)`)
	for _, table := range []string{"parts_a", "parts", "parts"} {
		db := l.Fenced(t, l.dsn, sqlfence.WithTable(table, sqlfence.Resource("books"), sqlfence.RowFence("fence_token"), sqlfence.Sealed()))
		if err := schema.Seal(t.Context(), db); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		if _, err := db.ExecContext(holding(t, 7), "UPDATE "+table+" SET id = id WHERE id = 1"); err != nil {
			t.Error(err)
		}
		l.refused(t, "UPDATE parts SET id = 2 WHERE id = 1", "table "+table+" is sealed")
		l.refused(t, "DELETE FROM parts", "table "+table+" is sealed")
		l.refused(t, "TRUNCATE parts", " is sealed")
	}
	l.exec(t, "UPDATE parts SET id = 2, fence_token = -8")
}

// A negative token was stored while the table had no seal. It counts as its absolute value, for the triggers that
// Seal's first statement creates, and after all statements.
func TestNegativeMark(t *testing.T) {
	l := newUnsealed(t, harness.Bases[1])
	l.exec(t, "UPDATE books SET fence_token = -42 WHERE id IN (1, 2)")
	plans, err := schema.SealPlan(t.Context(), l.db)
	if err != nil {
		t.Fatal(err)
	}
	l.exec(t, plans[0].Statements[0])
	l.refused(t, "UPDATE books SET price = 99, fence_token = -5 WHERE id = 1", "stale token 5 for table books, which has 42")
	l.refused(t, "DELETE FROM books WHERE id = 1 AND set_config('sqlfence.delete_books', '5', true) IS NOT NULL", "stale token 5")
	l.exec(t, "UPDATE books SET fence_token = -43 WHERE id = 1")
	l.want(t, "1:10@43 2:10@-42 3:10@0")
	l.seal(t)
	l.want(t, "1:10@43 2:10@42 3:10@0")
}

// A DELETE presents several tokens, each the newest one of its row.
func TestSeveralTokens(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		l := newLab(t, b, sqlfence.Key("id"), sqlfence.Ledger())
		l.exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ('books/1', 9), ('books/2', 8)")
		ctx := func(one, two int64) (tokens []sqlfence.Token) {
			return []sqlfence.Token{{Name: "books/1", Value: one}, {Name: "books/2", Value: two}}
		}
		for _, query := range []string{"UPDATE books SET price = 11 WHERE id IN (1, 2)", "DELETE FROM books WHERE id IN (1, 2)"} {
			if _, err := l.db.ExecContext(sqlfence.WithFence(t.Context(), ctx(9, 7)...), query); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("%s: %v", query, err)
			}
			if _, err := l.db.ExecContext(sqlfence.WithFence(t.Context(), ctx(9, 8)...), query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
		}
		l.want(t, "3:10@0")
	})
}

// A statement writes to two sealed tables, and finds their rows in any order.
func TestTwoTables(t *testing.T) {
	l := newUnsealed(t, harness.Bases[1])
	l.exec(t, "CREATE TABLE shelves (id integer PRIMARY KEY, book integer, fence_token bigint NOT NULL DEFAULT 0)")
	db := l.Fenced(t, l.dsn, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Sealed()),
		sqlfence.WithTable("shelves", sqlfence.Resource("books"), sqlfence.RowFence("fence_token"), sqlfence.Sealed()))
	if err := schema.Seal(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for _, plan := range []string{"bitmapscan", "nestloop", "hashjoin", "mergejoin", "material"} {
		if _, err := db.Exec("SET enable_" + plan + " = off"); err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{
			"WITH d AS (DELETE FROM books RETURNING id) DELETE FROM shelves USING d WHERE shelves.book = d.id",
			"WITH d AS (DELETE FROM books RETURNING id) DELETE FROM shelves USING d WHERE shelves.book = d.id AND shelves.id > 0",
			"WITH d AS (DELETE FROM books RETURNING id) DELETE FROM shelves WHERE shelves.book IN (SELECT id FROM d)",
			"WITH d AS (DELETE FROM books RETURNING id) DELETE FROM shelves WHERE id > (SELECT 0 * max(id) FROM d)",
			"WITH d AS (DELETE FROM shelves USING books b WHERE b.id = shelves.book RETURNING book) DELETE FROM books USING d, shelves s WHERE books.id = d.book AND s.book = books.id",
			"WITH d AS (DELETE FROM books USING shelves s WHERE s.book = books.id RETURNING books.id) DELETE FROM shelves USING d WHERE shelves.book = d.id",
			"WITH d AS (DELETE FROM books USING generate_series(1, 3) AS n WHERE n = books.id RETURNING books.id), e AS (DELETE FROM shelves USING d, generate_series(1, 3) AS n WHERE shelves.book = d.id AND n = book RETURNING book) SELECT FROM e",
			"WITH d AS (DELETE FROM books RETURNING id) DELETE FROM shelves USING d WHERE shelves.id > 0",
			"WITH d AS (DELETE FROM books RETURNING id) DELETE FROM shelves USING d",
			"WITH d AS (DELETE FROM books USING authors RIGHT JOIN generate_series(1, 3) AS n ON true WHERE books.id > 0 RETURNING books.id) DELETE FROM shelves USING d WHERE shelves.id > 0",
			"WITH d AS (DELETE FROM books RETURNING id) DELETE FROM shelves WHERE EXISTS (SELECT FROM d) AND id > 0",
			"WITH d AS (DELETE FROM books WHERE id = 2), e AS (DELETE FROM books USING shelves s WHERE s.book = books.id AND books.id <> 2 RETURNING books.id) DELETE FROM shelves USING e WHERE book = e.id",
		} {
			l.exec(t, "INSERT INTO shelves VALUES (1, 1, -7), (2, 2, -7), (3, 3, -7)")
			l.exec(t, "INSERT INTO books (id, fence_token) VALUES (1, -7), (2, -7), (3, -7) ON CONFLICT DO NOTHING")
			if _, err := db.ExecContext(holding(t, 7), query); err != nil {
				t.Errorf("without %s: %s: %v", plan, query, err)
			}
			l.exec(t, "ALTER TABLE books DISABLE TRIGGER USER; ALTER TABLE shelves DISABLE TRIGGER USER; DELETE FROM books; DELETE FROM shelves; ALTER TABLE books ENABLE TRIGGER USER; ALTER TABLE shelves ENABLE TRIGGER USER")
		}
	}
}

// A role that may drop a seal's triggers but not create them doesn't leave the table unsealed.
func TestSealWithoutThePrivilege(t *testing.T) {
	l := newLab(t, harness.MySQL)
	var logs, trusts bool
	if err := l.plain.QueryRow("SELECT @@log_bin, @@log_bin_trust_function_creators").Scan(&logs, &trusts); err != nil {
		t.Fatal(err)
	}
	if !logs || trusts {
		t.Skip("everybody may create triggers on this server, which has no binary log")
	}
	c, err := mysql.ParseDSN(l.dsn)
	if err != nil {
		t.Fatal(err)
	}
	user := l.unique[:16]
	l.exec(t, "CREATE USER "+user+"@'%' IDENTIFIED BY 'pass'")
	l.exec(t, "GRANT ALL ON "+c.DBName+".* TO "+user+"@'%'")
	defer l.exec(t, "DROP USER "+user+"@'%'")
	c.User, c.Passwd = user, "pass"
	if err := schema.Seal(t.Context(), l.Fenced(t, c.FormatDSN(), sqlfence.WithTable("books", l.rules...))); err == nil {
		t.Error("sealed without the privilege")
	}
	l.refused(t, "UPDATE books SET price = 99", unproven)
	l.refused(t, "DELETE FROM books", unproven)
}

// A Seal or Unseal that fails because of a missing column doesn't change the seal.
func TestSealWithoutTheColumn(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		l := newLab(t, b)
		for missing, rules := range map[string][]sqlfence.Rule{
			"the fence column": {sqlfence.RowFence("fence_tokne"), sqlfence.Sealed()},
			"the key":          {sqlfence.RowFence("fence_token"), sqlfence.Sealed(), sqlfence.Ledger(), sqlfence.Key("di")},
			"the serial":       {sqlfence.RowFence("fence_token"), sqlfence.Sealed(), sqlfence.Serial("version")},
		} {
			db := l.Fenced(t, l.dsn, sqlfence.WithTable("books", rules...))
			err := schema.Seal(t.Context(), db)
			t.Logf("without %s: %v", missing, err)
			if missing == "the fence column" && (err == nil || !strings.Contains(err.Error(), "schema.AddFence")) {
				t.Errorf("without %s: %v, want what adds it", missing, err)
			}
			if err := schema.Unseal(t.Context(), db); err == nil {
				l.seal(t)
			} else {
				t.Logf("without %s: %v", missing, err)
			}
			l.refused(t, "UPDATE books SET price = 99", unproven)
			l.refused(t, "DELETE FROM books", unproven)
			l.refused(t, "INSERT INTO books (id) VALUES (4)", unproven)
		}
	})
}

// In a session with a fixed timestamp, each statement is still checked against the ledger.
func TestFrozenTime(t *testing.T) {
	l := newLab(t, harness.MySQL, sqlfence.Ledger())
	l.plain.SetMaxOpenConns(1)
	for _, moment := range []string{"1000000000", "2147480000"} {
		l.exec(t, "SET timestamp = "+moment)
		l.exec(t, "UPDATE fencing_tokens SET token = 7 WHERE name = 'books'")
		l.exec(t, "UPDATE books SET price = 20, fence_token = -7")
		l.exec(t, "UPDATE fencing_tokens SET token = 8 WHERE name = 'books'")
		l.refused(t, "UPDATE books SET price = 99, fence_token = -7", "stale token 7 for table books, which has 8")
		l.refused(t, "DELETE FROM books WHERE (@sqlfence_delete := CONCAT('books:', NOW(6), ':', 7)) IS NOT NULL", "stale token 7 for table books, which has 8")
	}
	l.want(t, "1:20@7 2:20@7 3:20@7")
}
