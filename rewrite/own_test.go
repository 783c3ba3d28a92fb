package rewrite

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// ownSpellings are ways to write a table's name. % is the name's first letter, # the rest.
var ownSpellings = map[databases.Dialect][]string{
	databases.Postgres: {
		`%#`, `"%#"`, `public.%#`, `"other" . "%#"`, `db.public.%#`, "public/* */.\n%#",
		`U&"%#"`, `u&"\%04x#"`, `public.U&"\+%06x#"`, "\t%#",
	},
	databases.MySQL: {
		`%#`, "`%#`", `shop.%#`, "`other` . `%#`", "shop/* */.\n%#", ".%#",
	},
	databases.SQLite: {
		`%#`, `"%#"`, "`%#`", `[%#]`, `'%#'`, `main.%#`, `temp.'%#'`, `other . "%#"`, "main/* */.\n%#",
	},
}

// spelled returns the spellings of a name, also in capitals if the case doesn't matter.
func spelled(d databases.Dialect, name string) (all []string) {
	for _, s := range ownSpellings[d] {
		for _, n := range []string{name, strings.ToUpper(name)} {
			if n != name && d == databases.Postgres && strings.ContainsAny(s, `"`) {
				continue
			}
			if strings.Contains(s, "x") {
				all = append(all, strings.ReplaceAll(fmt.Sprintf(s, n[0]), "#", n[1:]))
				continue
			}
			all = append(all, strings.NewReplacer("%", n[:1], "#", n[1:]).Replace(s))
		}
	}
	return all
}

// ownRefused are statements that write to a table, define the table, or shadow the table with an object of the same
// name. The table is called @.
var ownRefused = map[databases.Dialect][]string{
	databases.Postgres: {
		"UPDATE @ SET token = 0", "UPDATE ONLY @ AS t SET token = 0", "UPDATE ONLY (@) SET token = 0",
		"INSERT INTO @ VALUES ('books', 0)", "INSERT INTO @ AS t (name, token) SELECT 'books', 0 ON CONFLICT (name) DO UPDATE SET token = 0",
		"INSERT INTO @ DEFAULT VALUES", "DELETE FROM @", "DELETE FROM @ USING log WHERE true",
		"MERGE INTO @ AS t USING log ON true WHEN MATCHED THEN DELETE",
		"WITH w AS (UPDATE @ SET token = 0 RETURNING *) SELECT * FROM w", "WITH w AS (SELECT 1) DELETE FROM @",
		"WITH w AS (WITH v AS (DELETE FROM @ RETURNING 1) SELECT 1) INSERT INTO log SELECT 1",
		"(WITH w AS (DELETE FROM @ RETURNING 1) SELECT * FROM w)", "((DELETE FROM @))",
		"EXPLAIN ANALYZE UPDATE @ SET token = 0", "EXPLAIN (ANALYZE, COSTS off) DELETE FROM @", "EXPLAIN ANALYZE SELECT 1 AS name INTO @",
		"COPY @ FROM STDIN", "COPY @ (name, token) FROM '/tmp/tokens'", "COPY (DELETE FROM @ RETURNING name) TO STDOUT",
		"COPY (WITH w AS (DELETE FROM @ RETURNING 1) SELECT 1) TO STDOUT",
		"TRUNCATE @", "TRUNCATE TABLE ONLY @ CASCADE", "TRUNCATE log, @",
		"DROP TABLE @", "DROP TABLE IF EXISTS log, @ CASCADE", "DROP VIEW @", "DROP TRIGGER t ON @", "DROP POLICY p ON @",
		"ALTER TABLE @ ADD COLUMN x int", "ALTER TABLE @ RENAME TO old", "ALTER TABLE log RENAME TO @", "ALTER VIEW log RENAME TO @",
		"ALTER TABLE IF EXISTS ONLY @ ALTER token TYPE real", "ALTER TABLE @ SET SCHEMA old", "ALTER TABLE @ DISABLE TRIGGER ALL",
		"ALTER TABLE log ATTACH PARTITION @ DEFAULT", "ALTER TABLE @ ATTACH PARTITION log DEFAULT", "ALTER TABLE log INHERIT @", "ALTER TABLE @ INHERIT log",
		"CREATE TABLE @ (name text, token bigint)", "CREATE TABLE IF NOT EXISTS @ (name text)", "CREATE UNLOGGED TABLE @ (name text)",
		"CREATE TEMP TABLE @ (name text)", "CREATE TEMPORARY TABLE @ AS SELECT 1", "CREATE LOCAL TEMP TABLE IF NOT EXISTS @ AS TABLE log",
		"CREATE TABLE part PARTITION OF @ DEFAULT", "CREATE TABLE child () INHERITS (@)", "CREATE TABLE child () INHERITS (log, @)",
		"CREATE VIEW @ AS SELECT 1", "CREATE OR REPLACE TEMP VIEW @ AS SELECT 1", "CREATE VIEW v AS SELECT * FROM @", "CREATE VIEW v AS TABLE @",
		"CREATE VIEW v AS WITH w AS (SELECT * FROM log) SELECT * FROM log, @", "CREATE RECURSIVE VIEW @ (n) AS SELECT 1",
		"CREATE MATERIALIZED VIEW @ AS SELECT 1", "CREATE FOREIGN TABLE @ (name text) SERVER s", "IMPORT FOREIGN SCHEMA x LIMIT TO (@) FROM SERVER s INTO public",
		"CREATE RULE r AS ON UPDATE TO @ DO INSTEAD NOTHING", "CREATE RULE r AS ON INSERT TO log DO ALSO UPDATE @ SET token = 0",
		"CREATE TRIGGER t BEFORE UPDATE ON @ EXECUTE FUNCTION f()", "CREATE POLICY p ON @ USING (false)", "CREATE INDEX i ON @ (token)",
		"CREATE UNIQUE INDEX CONCURRENTLY i ON ONLY @ (token)", "CREATE SEQUENCE @", "CREATE TYPE @ AS (name text)",
		"CREATE SCHEMA s CREATE TABLE @ (name text)", "CREATE SCHEMA s CREATE VIEW v AS SELECT * FROM @",
		"CREATE FUNCTION f() RETURNS void BEGIN ATOMIC UPDATE @ SET token = 0; END",
		"SELECT 'books' AS name, 0 AS token INTO @", "SELECT * INTO TEMP TABLE @ FROM log", "SELECT * INTO TEMPORARY @ FROM log", "SELECT 1 INTO UNLOGGED @ UNION SELECT 2",
		"WITH w AS (SELECT 1) SELECT * INTO TEMP @ FROM w", "(SELECT 1 INTO @)",
		"DO $$BEGIN UPDATE @ SET token = 0; END$$", "PREPARE p AS UPDATE @ SET token = 0", "CALL p('@')",
		"SELECT 1; UPDATE @ SET token = 0", "UPDATE log SET x = 1; DELETE FROM @", "SECURITY LABEL ON TABLE @ IS 'x'",
	},
	databases.MySQL: {
		"UPDATE @ SET token = 0", "UPDATE LOW_PRIORITY IGNORE @ AS t SET token = 0", "UPDATE HIGH_PRIORITY @ AS t SET token = 0", "UPDATE log JOIN @ t ON 1 SET t.token = 0", "UPDATE @, log SET token = 0",
		"INSERT INTO @ VALUES ('books', 0)", "INSERT @ SET name = 'books'", "INSERT IGNORE INTO @ (name, token) SELECT 'books', 0 ON DUPLICATE KEY UPDATE token = 0",
		"REPLACE INTO @ VALUES ('books', 0)", "DELETE FROM @", "DELETE t FROM @ t JOIN log ON 1", "DELETE FROM @ USING @ JOIN log ON 1",
		"WITH w AS (SELECT 1) DELETE FROM @", "TRUNCATE @", "TRUNCATE TABLE @", "LOAD DATA INFILE 'x' INTO TABLE @", "RENAME TABLE @ TO old", "RENAME TABLE log TO @",
		"DROP TABLE @", "DROP TABLE IF EXISTS log, @", "DROP VIEW @", "ALTER TABLE @ RENAME TO old", "ALTER TABLE log RENAME @", "ALTER TABLE @ DROP COLUMN token",
		"CREATE TABLE @ (name text)", "CREATE TEMPORARY TABLE IF NOT EXISTS @ (name text)", "CREATE OR REPLACE TABLE @ (name text)", "CREATE TABLE @ LIKE log", "CREATE TABLE @ SELECT 1",
		"CREATE VIEW @ AS SELECT 1", "CREATE OR REPLACE VIEW v AS SELECT * FROM @", "CREATE TRIGGER t BEFORE UPDATE ON @ FOR EACH ROW SET NEW.token = 0",
		"CREATE INDEX i ON @ (token)", "CREATE PROCEDURE p() UPDATE @ SET token = 0", "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM @",
		"BEGIN NOT ATOMIC UPDATE @ SET token = 0; END", "SET STATEMENT sql_mode = '' FOR DELETE FROM @", "SELECT 1; UPDATE @ SET token = 0",
		"ALTER TABLE log EXCHANGE PARTITION p WITH TABLE @",
	},
	databases.SQLite: {
		"UPDATE @ SET token = 0", "UPDATE OR IGNORE @ AS t SET token = 0", "INSERT INTO @ VALUES ('books', 0)", "INSERT OR REPLACE INTO @ VALUES ('books', 0)",
		"REPLACE INTO @ VALUES ('books', 0)", "INSERT INTO @ (name, token) SELECT 'books', 0 WHERE 1 ON CONFLICT (name) DO UPDATE SET token = 0",
		"INSERT INTO @ DEFAULT VALUES", "DELETE FROM @", "DELETE FROM @ INDEXED BY i WHERE 1", "WITH w AS (SELECT 1) DELETE FROM @", "WITH w AS (SELECT 1) REPLACE INTO @ SELECT 1",
		"DROP TABLE @", "DROP TABLE IF EXISTS @", "DROP VIEW @",
		"ALTER TABLE @ RENAME TO old", "ALTER TABLE log RENAME TO @", "ALTER TABLE @ RENAME COLUMN token TO t", "ALTER TABLE @ ADD COLUMN x", "ALTER TABLE @ DROP COLUMN token",
		"CREATE TABLE @ (name, token)", "CREATE TABLE IF NOT EXISTS @ (name)", "CREATE TEMP TABLE @ (name)", "CREATE TEMPORARY TABLE IF NOT EXISTS @ AS SELECT 1",
		"CREATE VIEW @ AS SELECT 1", "CREATE TEMP VIEW @ AS SELECT 1", "CREATE VIEW v AS SELECT * FROM @", "CREATE VIRTUAL TABLE @ USING fts5(name)",
		"CREATE TRIGGER t AFTER UPDATE ON log BEGIN UPDATE @ SET token = 0; END", "CREATE TEMP TRIGGER t AFTER UPDATE ON @ BEGIN SELECT 1; END",
		"CREATE TRIGGER t INSTEAD OF UPDATE ON v BEGIN DELETE FROM @; END", "CREATE INDEX i ON @ (token)", "CREATE UNIQUE INDEX IF NOT EXISTS i ON @ (token) WHERE token > 1",
		"SELECT 1; DELETE FROM @",
	},
}

// ownPassing are statements that name a table called @ and change no row of it.
var ownPassing = map[databases.Dialect][]string{
	databases.Postgres: {
		"SELECT token FROM @ WHERE name = 'books'", "SELECT * FROM @ FOR UPDATE", "TABLE @", "VALUES ((SELECT max(token) FROM @))", "(SELECT * FROM @)",
		"WITH w AS (SELECT * FROM @) SELECT * FROM w", "WITH w AS (SELECT * FROM @) UPDATE log SET x = w.token FROM w",
		"INSERT INTO log SELECT * FROM @", "UPDATE log SET x = (SELECT token FROM @)", "DELETE FROM log USING @ WHERE true", "SELECT * INTO log2 FROM @",
		"MERGE INTO log USING @ AS t ON true WHEN MATCHED THEN DELETE", "COPY @ TO STDOUT", "COPY (SELECT * FROM @) TO STDOUT",
		"EXPLAIN UPDATE @ SET token = 0", "EXPLAIN ANALYZE SELECT * FROM @", "DECLARE c CURSOR FOR SELECT * FROM @",
		"LOCK TABLE @ IN SHARE MODE", "ANALYZE @", "VACUUM FULL @", "REINDEX TABLE @", "GRANT SELECT ON @ TO someone", "REVOKE ALL ON @ FROM someone",
		"COMMENT ON TABLE @ IS 'x'",
	},
	databases.MySQL: {
		"SELECT token FROM @ WHERE name = 'books'", "SELECT * FROM @ FOR UPDATE", "SELECT token INTO @a FROM log JOIN @ ON 1", "(SELECT * FROM @)", "WITH w AS (SELECT * FROM @) SELECT * FROM w",
		"INSERT INTO log SELECT * FROM @", "UPDATE log SET x = (SELECT token FROM @)", "DELETE FROM log WHERE x IN (SELECT token FROM @)",
		"LOCK TABLES @ READ", "ANALYZE TABLE @", "CHECK TABLE @", "GRANT SELECT ON @ TO someone", "SHOW CREATE TABLE @", "DESCRIBE @", "HANDLER @ OPEN",
	},
	databases.SQLite: {
		"SELECT token FROM @ WHERE name = 'books'", "WITH w AS (SELECT * FROM @) SELECT * FROM w", "WITH w AS (SELECT * FROM @) DELETE FROM log WHERE x IN (SELECT token FROM w)",
		"INSERT INTO log SELECT * FROM @", "REPLACE INTO log SELECT * FROM @", "UPDATE log SET x = (SELECT token FROM @)", "EXPLAIN QUERY PLAN UPDATE @ SET token = 0",
		"ANALYZE @", "REINDEX @",
	},
}

// TestOwnTablesAreRegisteredAlways plans every statement for each table, in every
// spelling, with and without a table of the application's.
func TestOwnTablesAreRegisteredAlways(t *testing.T) {
	answers(t, ownSpellings)
	answers(t, ownRefused)
	for d := range answers(t, ownPassing) {
		for _, tables := range [][]Table{nil, {{Name: "books", Ledger: true}}} {
			r, err := New(d, tables)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range render.OwnTables {
				for _, spelling := range spelled(d, name) {
					for _, s := range ownRefused[d] {
						query := strings.ReplaceAll(s, "@", spelling)
						p := r.Plan(query)
						if p.Verdict != guard.Refuse || p.Refusal.Table >= 0 || p.Refusal.Reason == "" {
							t.Errorf("%v, %d tables: %s: %v, want refuse", d, len(tables), query, p.Verdict)
						}
						if code := strings.HasPrefix(s, "DO ") || strings.HasPrefix(s, "CALL "); !code && p.Refusal.Name != name {
							t.Errorf("%v, %d tables: %s: refused for %q, want %q: %s", d, len(tables), query, p.Refusal.Name, name, p.Refusal.Reason)
						}
					}
					for _, s := range ownPassing[d] {
						query := strings.ReplaceAll(s, "@", spelling)
						if p := r.Plan(query); p.Verdict != guard.Pass {
							t.Errorf("%v, %d tables: %s: %v (%s), want pass", d, len(tables), query, p.Verdict, p.Refusal.Reason)
						}
					}
				}
			}
		}
	}
}

// Tables whose names only resemble those of sqlfence's tables are the application's.
func TestNamesLikeThoseOfOwnTables(t *testing.T) {
	for _, d := range guardedDialects(t) {
		r, err := New(d, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{
			"UPDATE fencing_tokens_old SET token = 0", "DELETE FROM my_fencing_leases", "DROP TABLE rowlocks2", "UPDATE fencing SET token = 0",
			"UPDATE log SET rowlocks = 1", "INSERT INTO log (rowlocks) VALUES (1)", "WITH fencing_tokens AS (SELECT 1) SELECT * FROM fencing_tokens",
		} {
			if p := r.Plan(query); p.Verdict != guard.Pass {
				t.Errorf("%v: %s: %v (%s), want pass", d, query, p.Verdict, p.Refusal.Reason)
			}
		}
	}
}

// With PRAGMA writable_schema, which a DSN may also set, the definitions of tables can be written as rows of a table.
func TestWritesToTheSchemaAreRefused(t *testing.T) {
	for _, tables := range [][]Table{nil, {{Name: "books", Ledger: true}}} {
		r, err := New(databases.SQLite, tables)
		if err != nil {
			t.Fatal(err)
		}
		want := guard.Pass
		if len(tables) > 0 {
			want = guard.Refuse
		}
		for _, name := range []string{"sqlite_schema", "SQLite_Master", "main.sqlite_schema", `temp."sqlite_temp_schema"`, "[sqlite_temp_master]",
			"sqlite_dbpage", `main."SQLite_DBPage"`} {
			for _, query := range []string{
				"UPDATE % SET sql = replace(sql, 'a', 'b')", "DELETE FROM % WHERE name = 'x'", "INSERT INTO % (name) VALUES ('x')",
				"REPLACE INTO % (name) VALUES ('x')", "SELECT 1; UPDATE % SET name = 'x'", "WITH w AS (SELECT 1) UPDATE % SET name = 'x'",
			} {
				query = strings.ReplaceAll(query, "%", name)
				if p := r.Plan(query); p.Verdict != want {
					t.Errorf("%d tables: %s: %v, want %v", len(tables), query, p.Verdict, want)
				}
			}
			if p := r.Plan("SELECT sql FROM " + name); p.Verdict != guard.Pass {
				t.Errorf("%d tables: a read of %s: %v, want pass", len(tables), name, p.Verdict)
			}
		}
		for _, query := range []string{
			"CREATE VIRTUAL TABLE temp.pages USING sqlite_dbpage", "create virtual table if not exists pages using/**/\"SQLite_DBpage\"()",
			"CREATE VIRTUAL TABLE pages USING 'sqlite_dbpage'",
		} {
			if p := r.Plan(query); p.Verdict != want {
				t.Errorf("%d tables: %s: %v, want %v", len(tables), query, p.Verdict, want)
			}
		}
		for _, query := range []string{"PRAGMA writable_schema = ON", "PRAGMA table_info(fencing_tokens)", "CREATE TABLE sqlite_x (a)",
			"CREATE VIRTUAL TABLE notes USING fts5(sqlite_dbpage)"} {
			if p := r.Plan(query); p.Verdict != guard.Pass {
				t.Errorf("%d tables: %s: %v, want pass", len(tables), query, p.Verdict)
			}
		}
	}
}

func TestOwnTablesCanNotBeRegistered(t *testing.T) {
	for _, d := range guardedDialects(t) {
		for _, name := range render.OwnTables {
			for _, schema := range []string{"", "shop"} {
				if _, err := New(d, []Table{{Name: name, Schema: schema, Ledger: true}}); err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("%v: registering %s in %q: %v, want an error that names it", d, name, schema, err)
				}
			}
		}
	}
}

// Every name of sqlfence's tables is found, in upper and in lower case.
func TestEveryStartIsLookedFor(t *testing.T) {
	names := []string{"t", "ab", "a_", "_x", "ünter", `"x`, "x`y", "9lives"}
	var tables []Table
	for _, name := range names {
		tables = append(tables, Table{Name: name, Ledger: true})
	}
	for _, d := range guardedDialects(t) {
		r, err := New(d, tables)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Concat(names, render.OwnTables[:]) {
			quoted := says(d).Quote(name)
			for _, query := range []string{"DELETE FROM " + quoted, "DELETE FROM " + strings.ToUpper(quoted) + " WHERE true", quoted} {
				if !r.rules.Finds(query) {
					t.Errorf("%v: the name %s isn't seen in %s", d, name, query)
				}
			}
		}
		if r.rules.Finds("") {
			t.Error("nothing mentions a table")
		}
	}
}
