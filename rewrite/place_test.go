package rewrite

import (
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// A statement that creates a view with a table's name, in whatever schema, is refused if the table's guards read
// columns.
func TestViewsOfATablesNameAreRefused(t *testing.T) {
	for d, queries := range answers(t, map[databases.Dialect][]string{
		databases.Postgres: {
			"CREATE VIEW @ AS SELECT 1 AS id", "CREATE OR REPLACE VIEW @ (id) AS TABLE log", "CREATE TEMP VIEW @ AS SELECT 1", "CREATE LOCAL TEMPORARY VIEW @ AS SELECT 1", "CREATE RECURSIVE VIEW @ (n) AS SELECT 1",
			"CREATE MATERIALIZED VIEW IF NOT EXISTS @ AS SELECT 1", "CREATE FOREIGN TABLE @ (id int) SERVER s", "ALTER VIEW v RENAME TO @", "ALTER VIEW @ SET SCHEMA x", "ALTER TABLE v RENAME TO @", "CREATE SCHEMA s CREATE VIEW @ AS SELECT 1",
			"SELECT 1; CREATE VIEW @ AS SELECT 1", "DO $$BEGIN CREATE VIEW @ AS SELECT 1; END$$",
		},
		databases.MySQL: {
			"CREATE VIEW @ AS SELECT 1 AS id", "CREATE OR REPLACE VIEW @ (id) AS SELECT 1", "CREATE VIEW IF NOT EXISTS @ AS SELECT 1", "CREATE ALGORITHM = MERGE VIEW @ AS SELECT 1",
			"CREATE DEFINER = view@localhost SQL SECURITY INVOKER VIEW @ AS SELECT 1", "CREATE DEFINER = CURRENT_USER() VIEW @ AS SELECT 1", "ALTER VIEW @ AS SELECT 2", "RENAME TABLE v TO @",
		},
		databases.SQLite: {"CREATE VIEW @ AS SELECT 1 AS id", "CREATE TEMP VIEW IF NOT EXISTS @ AS SELECT 1", "CREATE TEMPORARY VIEW @ (id) AS SELECT 1"},
	}) {
		spelled := map[databases.Dialect][]string{
			databases.Postgres: {"books", `"books"`, "BOOKS", "evil.books", `evil . "books"`, `U&"\0062ooks"`, "db.evil.books", "pg_temp.books"},
			databases.MySQL:    {"books", "`books`", "Books", "evil.books", "`evil` . `books`"},
			databases.SQLite:   {"books", "[books]", "'books'", "BOOKS", "temp.books", `aux."books"`},
		}[d]
		for _, table := range []Table{
			{Name: "books", FenceColumn: "fence_token"}, {Schema: "shop", Name: "books", Ledger: true, Key: "id"}, {Name: "books", Serial: "version"},
			{Name: "*", Pattern: true, FenceColumn: "fence_token"}, {Schema: "shop", Name: "*", Pattern: true, FenceColumn: "fence_token"},
		} {
			r, err := New(d, []Table{table, {Name: "shelf", Ledger: true}, {Name: "free", Exempt: true}})
			if err != nil {
				t.Fatal(err)
			}
			for _, shape := range queries {
				for _, name := range spelled {
					if strings.HasPrefix(shape, "CREATE SCHEMA") && table.Schema == "shop" && strings.Contains(name, ".") {
						continue // it has to be the new schema's
					}
					query := strings.ReplaceAll(shape, "@", name)
					if p := r.Plan(query); p.Verdict != guard.Refuse || p.Refusal.Reason == "" {
						t.Errorf("%v, %+v: %s: %v, want refuse", d, table, query, p.Verdict)
					}
				}
			}
			for _, query := range []string{"CREATE VIEW free AS SELECT * FROM books", "CREATE VIEW shelf AS SELECT * FROM books", "CREATE TABLE books (view int)", "SELECT view FROM books"} {
				if p := r.Plan(query); p.Verdict != guard.Pass {
					t.Errorf("%v, %+v: %s: %v (%s), want pass", d, table, query, p.Verdict, p.Refusal.Reason)
				}
			}
		}
	}
}
