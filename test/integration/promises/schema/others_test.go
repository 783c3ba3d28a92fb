package schema_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The effects of a new column on running programs, as docs/migrations.md describes.

// In PostgreSQL a prepared statement with `*` fails: a statement that pgx has prepared fails once on each connection,
// and a sql.Stmt fails until it is closed. Statements that name their columns continue, guarded or not.
func TestAddFenceBesidePrepared(t *testing.T) {
	servers(t, func(t *testing.T, b harness.Base) {
		source := b.DSN(t)
		plain := b.Raw(t, source)
		fill(t, b, plain, 10)
		mark := "?"
		if b.Dialect == sqlfence.Postgres {
			mark = "$1"
		}
		fenced := b.Fenced(t, source, harness.Books(sqlfence.RowFence("fence_token")))
		if err := schema.AddFence(t.Context(), plain, "books", "fence_token"); err != nil {
			t.Fatal(err)
		}
		for i, test := range []struct {
			name, query string
			db          *sql.DB
			prepared    bool
			failures    map[string]int // of ten executions, by the driver
		}{
			{"columns", "SELECT price FROM books WHERE id = ", b.Raw(t, source), true, nil},
			{"columns", "SELECT price FROM books WHERE id = ", b.Raw(t, source), false, nil},
			{"all", "SELECT * FROM books WHERE id = ", b.Raw(t, source), true, map[string]int{"pq": 10, "pgx": 10}},
			{"all", "SELECT * FROM books WHERE id = ", b.Raw(t, source), false, map[string]int{"pgx": 1}},
			{"guarded", "UPDATE books SET price = 1 WHERE id = ", fenced, false, nil},
			{"guarded, all", "UPDATE books SET price = 1 WHERE id = " + mark + " RETURNING *", fenced, false, map[string]int{"pgx": 1}},
		} {
			if b.Dialect == sqlfence.MySQL && test.name == "guarded, all" {
				continue
			}
			query := test.query
			if test.name != "guarded, all" {
				query += mark
			}
			test.db.SetMaxOpenConns(1)
			run := func() (*sql.Rows, error) { return test.db.QueryContext(harness.Holding(t, 5), query, 1) }
			if test.prepared {
				stmt, err := test.db.Prepare(query)
				if err != nil {
					t.Fatal(err)
				}
				defer stmt.Close()
				run = func() (*sql.Rows, error) { return stmt.Query(1) }
			}
			failures := func() (n int) {
				for range 10 {
					if _, err := harness.Returned(run()); err != nil {
						t.Log(test.name, err)
						n++
					}
				}
				return n
			}
			if n := failures(); n > 0 {
				t.Fatalf("%s: %d failures before", test.name, n)
			}
			if err := schema.AddFence(t.Context(), plain, "books", "fence_"+string(rune('a'+i))); err != nil {
				t.Fatal(err)
			}
			if n := failures(); n != test.failures[b.Name] {
				t.Errorf("%s, prepared %t: %d failures of 10, want %d", test.name, test.prepared, n, test.failures[b.Name])
			}
		}
	})
}

// In MySQL a transaction whose snapshot is older than the column can't read the table. In MariaDB it can.
func TestAddFenceBesideSnapshot(t *testing.T) {
	servers(t, func(t *testing.T, b harness.Base) {
		plain := b.Raw(t, b.DSN(t))
		fill(t, b, plain, 10)
		harness.MustExec(t, plain, "CREATE TABLE pens (id bigint)")
		harness.MustExec(t, plain, "INSERT INTO pens (id) VALUES (1)")
		tx := harness.Begin(t.Context(), t, plain, sql.LevelRepeatableRead)
		var n int
		if err := tx.QueryRow("SELECT count(*) FROM pens").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if err := schema.AddFence(t.Context(), plain, "books", "fence_token"); err != nil {
			t.Fatal(err)
		}
		err := tx.QueryRow("SELECT price FROM books WHERE id = 1").Scan(&n)
		var version string
		if err := plain.QueryRow("SELECT VERSION()").Scan(&version); err != nil {
			t.Fatal(err)
		}
		want := uint16(0)
		if b.Dialect == sqlfence.MySQL && !strings.Contains(version, "MariaDB") {
			want = 1412
		}
		if number, _ := dberr.MySQLNumber(err); number != want || want == 0 && err != nil {
			t.Errorf("err = %v, want %d", err, want)
		}
	})
}
