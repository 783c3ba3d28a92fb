package rewrite

import (
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// catalogueWrites are forms of a write to PostgreSQL's catalogue table @. catalogueReads only read @, or only look like
// a write.
var (
	catalogueWrites = []string{
		"UPDATE @ SET oid = 1", "update only @ as c set oid = 1 from log", "UPDATE @ * SET oid = 1", "INSERT INTO @ VALUES (1)", "INSERT INTO @ SELECT * FROM log",
		"INSERT INTO @ VALUES (1) ON CONFLICT DO NOTHING", "DELETE FROM @", "DELETE FROM ONLY @ USING log", "MERGE INTO @ USING log ON true WHEN MATCHED THEN DELETE",
		"WITH w AS (DELETE FROM @ RETURNING 1) SELECT * FROM w", "WITH w AS (SELECT 1) UPDATE @ SET oid = 1", "EXPLAIN ANALYZE DELETE FROM @", "SELECT 1; DELETE FROM @",
		"COPY @ FROM STDIN", "COPY @ (oid) FROM '/x'", "COPY (DELETE FROM @ RETURNING 1) TO STDOUT", "TRUNCATE @", "TRUNCATE TABLE ONLY log, @ CASCADE", "PREPARE p AS DELETE FROM @", "PREPARE p (int) AS WITH w AS (SELECT 1) UPDATE @ SET oid = $1",
		"ALTER TABLE @ DISABLE TRIGGER ALL", "ALTER TABLE IF EXISTS ONLY @ ADD COLUMN x int", "CREATE TRIGGER t BEFORE UPDATE ON @ FOR EACH ROW EXECUTE FUNCTION f()", "CREATE RULE r AS ON UPDATE TO @ DO INSTEAD NOTHING", "DROP TRIGGER t ON @",
		"DO $$BEGIN UPDATE @ SET oid = 1; END$$", "DO 'BEGIN DELETE FROM @; END'", "DO $$BEGIN IF EXISTS (SELECT 1 FROM @) THEN INSERT INTO @ VALUES (1); END IF; END$$", "DO $$BEGIN SELECT 1; TRUNCATE log, @; END$$",
		"DECLARE c CURSOR FOR WITH w AS (DELETE FROM @ RETURNING 1) SELECT * FROM w", "DELETE FROM @ WHERE CURRENT OF c", "CREATE TABLE t AS WITH w AS (DELETE FROM @ RETURNING 1) SELECT * FROM w",
	}
	catalogueReads = []string{
		"SELECT * FROM @", "TABLE @", "SELECT count(*) FROM ONLY @ AS c JOIN log ON c.oid = log.id", "SELECT a.* FROM log AS a, @ AS b WHERE b.oid = a.id FOR SHARE OF a", "SELECT 'UPDATE @', 1 FROM @ -- DELETE FROM @",
		"WITH w AS (SELECT * FROM @) SELECT * FROM w", "EXPLAIN SELECT * FROM @", "EXPLAIN (ANALYZE) SELECT * FROM @", "COPY @ TO STDOUT", "COPY (SELECT * FROM @) TO STDOUT", "LOCK TABLE @", "ANALYZE @", "VACUUM @", "REINDEX TABLE @", "GRANT SELECT ON @ TO someone", "COMMENT ON TABLE @ IS 'x'",
		"INSERT INTO log SELECT oid FROM @", "UPDATE log SET x = (SELECT max(oid::text) FROM @)", "DELETE FROM log USING @ AS c WHERE c.oid = log.id", "MERGE INTO log USING @ AS c ON c.oid = log.id WHEN MATCHED THEN DELETE",
		"CREATE VIEW v AS SELECT * FROM @", "CREATE TABLE t AS SELECT * FROM @", "CREATE TEMP TABLE t (LIKE @)", "CREATE MATERIALIZED VIEW v AS SELECT * FROM log JOIN @ ON true", "PREPARE p AS SELECT * FROM @", "DECLARE c CURSOR FOR SELECT * FROM @", "SELECT * INTO t FROM @",
		"DO $$BEGIN IF NOT EXISTS (SELECT 1 FROM @) THEN CREATE TYPE x AS ENUM ('a'); END IF; END$$", "DO $$DECLARE r record; BEGIN FOR r IN SELECT * FROM @ AS c JOIN log ON c.oid = log.id LOOP DELETE FROM log USING @; ALTER TABLE log ADD x int; PERFORM 1 FROM @; END LOOP; END$$",
		"DO $$DECLARE x int; BEGIN SELECT count(*) INTO x FROM @; GRANT SELECT ON @ TO someone; END$$",
	}
)

// A write to a table of PostgreSQL's own is refused, in any shape and spelling, as it could switch a guard off. Reads
// pass: clients read these tables all the time.
func TestWritesOfDefinitionsAreRefused(t *testing.T) {
	r, err := New(databases.Postgres, []Table{{Name: "books", FenceColumn: "fence_token"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pg_trigger", "pg_class", "pg_group"} {
		for _, spelled := range []string{name, "pg_catalog." + name, strings.ToUpper(name), `"pg_catalog" . "` + name + `"`, "PG_Catalog/* */." + name, `U&"` + strings.Replace(name, "_", `\005f`, 1) + `"`, "postgres.pg_catalog." + name} {
			for _, shape := range catalogueWrites {
				query := strings.ReplaceAll(shape, "@", spelled)
				if p := r.Plan(query); p.Verdict != guard.Refuse {
					t.Errorf("%s: %v, want refuse", query, p.Verdict)
				}
			}
			for _, shape := range catalogueReads {
				if strings.Contains(spelled, "&") && strings.HasPrefix(shape, "DO") {
					continue // names with escapes are refused in code
				}
				query := strings.ReplaceAll(shape, "@", spelled)
				if p := r.Plan(query); p.Verdict != guard.Pass {
					t.Errorf("%s: %v (%s), want pass", query, p.Verdict, p.Refusal.Reason)
				}
			}
		}
		for _, query := range []string{"UPDATE app." + name + " SET x = 1", "DELETE FROM pg_temp." + name, "UPDATE log SET " + name + " = 1", "UPDATE log AS " + name + " SET x = 1"} {
			if p := r.Plan(query); p.Verdict != guard.Pass {
				t.Errorf("%s: %v (%s), want pass", query, p.Verdict, p.Refusal.Reason)
			}
		}
	}
	none, err := New(databases.Postgres, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p := none.Plan("UPDATE pg_class SET relname = 'x'"); p.Verdict != guard.Pass {
		t.Errorf("without a registered table: %v (%s)", p.Verdict, p.Refusal.Reason)
	}
}
