package rewrite

import (
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// TestNamesakesOfTablesPass has statements about an object that isn't a table but has a registered table's name. They
// pass, unless they name the table, too.
func TestNamesakesOfTablesPass(t *testing.T) {
	all := []databases.Dialect{databases.Postgres, databases.MySQL}
	for _, tt := range []struct {
		dialects []databases.Dialect
		passes   []string
		refused  []string
	}{
		{all, []string{
			"CALL books()", "CALL books(1, 'pens')", "CALL shop.books(1)", "CALL books.run(2)", "call /* x */ Books ()",
			"DEALLOCATE PREPARE books", "EXECUTE books",
			"CREATE ROLE books", "DROP ROLE books", "CREATE USER books", "DROP USER IF EXISTS books",
			"DROP FUNCTION books", "DROP PROCEDURE IF EXISTS shop.books",
			"SAVEPOINT books", "ROLLBACK TO SAVEPOINT books", "RELEASE SAVEPOINT books",
		}, []string{
			"CALL p(books)", "CALL books(books)", "CALL books('books')", "CALL books((SELECT 1 FROM books))", "CALL p('DELETE FROM books')",
			"CALL books DELETE FROM books", "CALL books.", "CALL books.x.y.z()", "CALL p; DELETE FROM books",
			"CALL (books)", "CALL 1 books", "PREPARE 1 books",
			"DROP TABLE books", "DROP VIEW books", "DROP INDEX books", "DROP TRIGGER t ON books", "DROP SEQUENCE books",
			"DROP FUNCTION fencing_tokens", "DROP FUNCTION f; DROP TABLE books",
		}},
		{[]databases.Dialect{databases.Postgres}, []string{
			`CALL "books"()`, `CALL U&"\0062ooks"()`, "PREPARE books AS SELECT 1", "PREPARE books (int) AS SELECT $1", "EXECUTE books(1)",
			"DEALLOCATE books", "DROP ROUTINE books", "DROP AGGREGATE books(int)", "DROP FUNCTION f(books) CASCADE",
			"LISTEN books", "NOTIFY books, 'x'", "UNLISTEN books",
			"DECLARE books CURSOR FOR SELECT 1", "PREPARE books (books) AS DELETE FROM pens", "FETCH NEXT FROM books", "MOVE books", "CLOSE books", "SET ROLE books",
			"PREPARE p AS INSERT INTO pens SELECT id FROM books", "PREPARE p AS UPDATE pens SET a = (SELECT max(id) FROM books)",
		}, []string{
			"PREPARE p AS INSERT INTO pens SELECT (WITH x AS (DELETE FROM books RETURNING 1) SELECT * FROM x)",
			"CALL p(books => 1)", "PREPARE books AS DELETE FROM books", "PREPARE p AS DELETE FROM books",
			"DO $$BEGIN CALL books(); END$$", "DECLARE c CURSOR FOR WITH x AS (DELETE FROM books RETURNING 1) SELECT * FROM x",
		}},
		{[]databases.Dialect{databases.MySQL}, []string{
			"CALL books", "CALL `books`()", "CALL `shop` . `books` (@a)", "PREPARE books FROM 'SELECT 1'", "DROP PREPARE books", "USE books",
		}, []string{
			"PREPARE books FROM 'DELETE FROM books'", "PREPARE p FROM 'DELETE FROM books'", "PREPARE books FROM @a",
			"EXECUTE IMMEDIATE 'DELETE FROM books'", "BEGIN NOT ATOMIC CALL books(); DELETE FROM books; END", "DROP EVENT books",
		}},
	} {
		for _, d := range tt.dialects {
			r, err := New(d, []Table{{Name: "books", Ledger: true}})
			if err != nil {
				t.Fatal(err)
			}
			for _, sql := range tt.passes {
				if p := r.Plan(sql); p.Verdict != guard.Pass {
					t.Errorf("%v, %s: %v, %s", d, sql, p.Verdict, p.Refusal.Reason)
				}
			}
			for _, sql := range tt.refused {
				if p := r.Plan(sql); p.Verdict != guard.Refuse {
					t.Errorf("%v, %s: %v", d, sql, p.Verdict)
				}
			}
		}
	}
}
