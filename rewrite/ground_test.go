package rewrite

import (
	"slices"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// groundNames are functions, triggers and constraints on which guards and seals rely, and names that a later version of
// sqlfence might use for such objects.
var groundNames = map[databases.Dialect][]string{
	databases.Postgres: {
		sqltext.LedgerFunction, sqltext.LedgerTrigger, sqltext.SealTrigger, "~sqlfence_delete", "~sqlfence_before", "~sqlfence_after", "~sqlfence_truncate",
		"sqlfence_write_books", "sqlfence_delete_books", "sqlfence_clear_books", "sqlfence_truncate_books", sqltext.SealedPrefix, "sqlfence_later_v2", "sqlfence-x",
	},
	databases.MySQL: {
		sqltext.SealPrefix + "insert:books", sqltext.SealPrefix + "delete:books", sqltext.OpenPrefix + "update:books", sqltext.SealBusy + "insert:books",
		"sqlfence_later_v2",
	},
	databases.SQLite: {"sqlfence_ledger_update_v1", "sqlfence_later_v2"},
}

// groundShapes define, change or drop an object named @.
var groundShapes = map[databases.Dialect][]string{
	databases.Postgres: {
		"CREATE FUNCTION @(wanted text, given bigint, number integer, asked regclass) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
		"CREATE OR REPLACE FUNCTION @(text, bigint, integer, regclass) RETURNS boolean RETURN true",
		"CREATE OR REPLACE FUNCTION @() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END$$",
		"CREATE OR REPLACE PROCEDURE @() LANGUAGE sql AS ''", "CREATE AGGREGATE @ (int) (sfunc = f, stype = int)",
		"ALTER FUNCTION @ STABLE", "ALTER FUNCTION @(text, bigint, integer, regclass) STABLE", "ALTER FUNCTION @ RENAME TO f", "ALTER FUNCTION f() RENAME TO @",
		"ALTER FUNCTION @() OWNER TO someone", "ALTER FUNCTION @ SET SCHEMA other", "ALTER FUNCTION @ SET search_path = evil", "ALTER FUNCTION @ DEPENDS ON EXTENSION x",
		"ALTER ROUTINE @ SECURITY DEFINER", "ALTER PROCEDURE @ RENAME TO f", "DROP FUNCTION @", "DROP FUNCTION IF EXISTS f, @ CASCADE", "DROP FUNCTION f(int), @(text, bigint, integer, regclass), g",
		"DROP ROUTINE @", "DROP PROCEDURE IF EXISTS @", "DROP AGGREGATE @ (int)",
		"CREATE TRIGGER @ BEFORE UPDATE ON log FOR EACH ROW EXECUTE FUNCTION f()", "CREATE OR REPLACE TRIGGER @ AFTER INSERT ON log EXECUTE FUNCTION f()",
		"CREATE CONSTRAINT TRIGGER @ AFTER UPDATE ON log FOR EACH ROW EXECUTE FUNCTION f()", "CREATE TRIGGER t BEFORE UPDATE ON log FOR EACH ROW EXECUTE FUNCTION @()",
		"CREATE EVENT TRIGGER e ON sql_drop EXECUTE FUNCTION @()", "DROP TRIGGER @ ON part_of_books", "DROP TRIGGER IF EXISTS @ ON log CASCADE", "ALTER TRIGGER @ ON log RENAME TO t",
		"ALTER TRIGGER t ON log RENAME TO @", "ALTER TABLE part_of_books DISABLE TRIGGER @", "ALTER TABLE IF EXISTS log ENABLE REPLICA TRIGGER @", "ALTER TABLE log ENABLE TRIGGER @",
		"ALTER TABLE log ADD COLUMN x int, DISABLE TRIGGER @", "ALTER TABLE part_of_books DROP CONSTRAINT @", "ALTER TABLE log RENAME CONSTRAINT @ TO k",
		"SELECT 1; DROP FUNCTION @", "UPDATE log SET x = 1; ALTER FUNCTION @ STABLE", "CREATE SCHEMA s CREATE TRIGGER @ BEFORE UPDATE ON log EXECUTE FUNCTION f()",
		"DO $$BEGIN DROP FUNCTION @; END$$", "DO 'BEGIN ALTER FUNCTION x.@ STABLE; END'", "ALTER EXTENSION x ADD FUNCTION @()", "DROP TRANSFORM FOR int LANGUAGE @",
	},
	databases.MySQL: {
		"CREATE TRIGGER @ BEFORE UPDATE ON log FOR EACH ROW SET NEW.x = 1", "CREATE OR REPLACE TRIGGER @ BEFORE DELETE ON log FOR EACH ROW BEGIN END", "CREATE TRIGGER IF NOT EXISTS @ AFTER INSERT ON log FOR EACH ROW SET @x = 1",
		"CREATE DEFINER = root@localhost TRIGGER @ BEFORE INSERT ON log FOR EACH ROW FOLLOWS t SET NEW.x = 1", "CREATE TRIGGER t BEFORE UPDATE ON log FOR EACH ROW PRECEDES @ SET NEW.x = 1",
		"DROP TRIGGER @", "DROP TRIGGER IF EXISTS @", "DROP FUNCTION @", "DROP PROCEDURE IF EXISTS @", "CREATE FUNCTION @() RETURNS int RETURN 1", "CREATE OR REPLACE PROCEDURE @() SELECT 1", "ALTER PROCEDURE @ SQL SECURITY INVOKER",
		"BEGIN NOT ATOMIC DROP TRIGGER @; END", "SELECT 1; DROP TRIGGER @", "ALTER TABLE log DROP CONSTRAINT @",
	},
	databases.SQLite: {
		"CREATE TRIGGER @ AFTER UPDATE ON log BEGIN SELECT 1; END", "CREATE TEMP TRIGGER IF NOT EXISTS @ BEFORE INSERT ON log BEGIN SELECT 1; END", "DROP TRIGGER @", "DROP TRIGGER IF EXISTS @", "SELECT 1; DROP TRIGGER @",
	},
}

// groundSpellings are ways to write a name.
var groundSpellings = map[databases.Dialect][]string{
	databases.Postgres: {`"@"`, `public."@"`, `"other" . "@"`, "public/* */.\n\"@\"", `db.public."@"`},
	databases.MySQL:    {"`@`", "shop.`@`", "`other` . `@`", "shop/* */.\n`@`"},
	databases.SQLite:   {`"@"`, "`@`", "[@]", "'@'", `main."@"`, "main/* */.\n[@]"},
}

// spelledGround returns the spellings of a name.
func spelledGround(d databases.Dialect, name string) (all []string) {
	for _, s := range groundSpellings[d] {
		all = append(all, strings.ReplaceAll(s, "@", name), strings.ReplaceAll(s, "@", strings.ToUpper(name)))
	}
	if !strings.ContainsAny(name, "~-:") {
		all = append(all, name, strings.ToUpper(name), "public."+name)
	}
	if d == databases.Postgres {
		var escaped strings.Builder
		for _, c := range name {
			escaped.WriteString(`\00` + string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]))
		}
		all = append(all, `U&"`+escaped.String()+`"`)
	}
	return all
}

// A fenced database refuses each statement that defines, changes or drops an object that guards and seals need, in any
// shape and in any spelling. Only sqlfence's packages may send such statements.
func TestTheGroundIsKept(t *testing.T) {
	answers(t, groundShapes)
	for d := range answers(t, groundNames) {
		for _, tables := range [][]Table{nil, {{Name: "books", Ledger: true}}} {
			r, err := New(d, tables)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range groundNames[d] {
				for _, spelling := range spelledGround(d, name) {
					for _, shape := range groundShapes[d] {
						query := strings.ReplaceAll(shape, "@", spelling)
						if strings.HasPrefix(shape, "DO '") && strings.Contains(spelling, "'") || strings.Contains(shape, "@x") || strings.Contains(shape, "root@") {
							query = strings.NewReplacer("root@", "root@", "@x", "@x", "@", spelling).Replace(shape)
						}
						if p := r.Plan(query); p.Verdict != guard.Refuse || p.Refusal.Reason == "" {
							t.Errorf("%v, %d tables: %s: %v, want refuse", d, len(tables), query, p.Verdict)
						}
					}
				}
			}
		}
	}
}

// A statement passes if it only resembles a change of these objects, or only names them.
func TestWhatOnlyNamesTheGroundPasses(t *testing.T) {
	for d, queries := range answers(t, map[databases.Dialect][]string{
		databases.Postgres: {
			"CREATE TABLE sqlfence_versions (id int)", "INSERT INTO sqlfence_versions VALUES (1)", "DROP TABLE sqlfence_versions", "ALTER TABLE sqlfence_versions ADD COLUMN x int",
			"SELECT sqlfence_newest_v1('books', 1, 0, 'fencing_tokens')", "COMMENT ON FUNCTION sqlfence_newest_v1 IS 'x'", "GRANT EXECUTE ON FUNCTION sqlfence_newest_v1 TO someone",
			"CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$BEGIN END$$", "DROP FUNCTION f", "CREATE TRIGGER t BEFORE UPDATE ON log EXECUTE FUNCTION f()", "DROP TRIGGER t ON log", "DROP FUNCTION sqlfencing",
			"SELECT trigger FROM sqlfence_versions", "UPDATE sqlfence_versions SET trigger = 1", "DROP SCHEMA tenant CASCADE", "ALTER SCHEMA tenant RENAME TO other", "ALTER SCHEMA shop OWNER TO x", "DROP SCHEMA public", "DROP EXTENSION postgis CASCADE",
			"SHOW session_replication_role", "RESET session_replication_role", "SET session_replication_role = origin", "SET LOCAL session_replication_role TO DEFAULT", "SELECT current_setting('session_replication_role')",
			"SELECT set_config('sqlfence.tokens', 'books:000000000000001', true)", "SELECT set_config('sqlfence.delete_pens', '1', true)", "SET sqlfence.tokens = ''",
		},
		databases.MySQL: {
			"CREATE TABLE sqlfence_versions (id int)", "DROP TABLE sqlfence_versions", "CREATE TRIGGER t BEFORE UPDATE ON log FOR EACH ROW SET NEW.x = 1", "DROP TRIGGER t",
			"GRANT TRIGGER, CREATE ON shop.* TO sqlfence_app", "SET @sqlfence_delete = '1'", "DROP DATABASE other", "CREATE DATABASE shop", "SELECT DATABASE()",
		},
		databases.SQLite: {"CREATE TABLE sqlfence_versions (id)", "DROP TABLE sqlfence_versions", "CREATE TRIGGER t AFTER UPDATE ON log BEGIN SELECT 1; END", "DROP TRIGGER t"},
	}) {
		r, err := New(d, []Table{{Name: "books", Schema: "shop", Ledger: true}})
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range queries {
			if p := r.Plan(query); p.Verdict != guard.Pass {
				t.Errorf("%v: %s: %v (%s), want pass", d, query, p.Verdict, p.Refusal.Reason)
			}
		}
	}
}

// Settings keep triggers from firing or comparing, and some statements drop tables and functions without naming them.
// Without a registered table such statements pass.
func TestSettingsAndSchemasAreKept(t *testing.T) {
	for d, queries := range answers(t, map[databases.Dialect][]string{
		databases.Postgres: {
			"SET session_replication_role = replica", "SET session_replication_role TO 'replica'", "SET LOCAL Session_Replication_Role = REPLICA", `SET SESSION "session_replication_role" = replica`,
			"SELECT set_config('session_replication_role', 'replica', false)", "SELECT pg_catalog.set_config('Session_Replication_Role', $1, $2)", "SELECT set_config($$session_replication_role$$, 'replica', false)", "SELECT \"set_config\"(E'session_replication_role', 'replica', false)",
			"UPDATE log SET x = set_config('session_replication_role', 'replica', true)", "WITH w AS (SELECT set_config('session_replication_role', 'replica', true)) UPDATE log SET x = 1",
			"ALTER ROLE someone SET session_replication_role = replica", "ALTER DATABASE shop SET session_replication_role = replica", "ALTER SYSTEM SET session_replication_role = replica",
			"CREATE FUNCTION f() RETURNS int LANGUAGE sql SET session_replication_role = replica AS 'SELECT 1'", "UPDATE pg_settings SET setting = 'replica' WHERE name = 'session_replication_role'",
			"SET sqlfence.seen = '1:2'", "SET LOCAL sqlfence.turns TO 9", "SELECT set_config('sqlfence.seen', 'x', true)", "SELECT set_config('sqlfence.move_books', 'to:1', true)", `SET "sqlfence"."seen" = 'x'`, `SET U&"sqlf\0065nce".seen = 'x'`,
			"DO $$BEGIN PERFORM set_config('sqlfence.seen', 'x', true); END$$", "DO $$BEGIN SET session_replication_role = replica; END$$", "SELECT 1; SET session_replication_role = replica",
			"ALTER SCHEMA public RENAME TO old", "ALTER SCHEMA shop RENAME TO x", "ALTER SCHEMA evil RENAME TO \"shop\"", "DROP SCHEMA public CASCADE", "DROP SCHEMA IF EXISTS other, shop CASCADE", `DROP SCHEMA "public" CASCADE`, "DROP OWNED BY someone", "DROP EXTENSION plpgsql CASCADE", "DROP LANGUAGE IF EXISTS plpgsql CASCADE", "DROP PROCEDURAL LANGUAGE plpgsql CASCADE",
		},
		databases.MySQL: {
			"SET @sqlfence_seen = '1'", "SET @x = 1, @`sqlfence_seen` := 'y'", "SELECT @sqlfence_seen := 'x'", "SELECT 'x' INTO @SQLFENCE_SEEN", "UPDATE log SET x = @sqlfence_seen := 1",
			"DROP DATABASE shop", "DROP SCHEMA IF EXISTS `shop`",
		},
		databases.SQLite: {},
	}) {
		r, err := New(d, []Table{{Name: "books", Schema: "shop", Ledger: true}})
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range queries {
			if p := r.Plan(query); p.Verdict != guard.Refuse || p.Refusal.Reason == "" {
				t.Errorf("%v: %s: %v, want refuse", d, query, p.Verdict)
			}
		}
	}
}

// The ledger's schema, by WithLedgerSchema, is protected like a registered table's schema.
func TestTheLedgersSchemaIsKept(t *testing.T) {
	for d, queries := range map[databases.Dialect][]string{
		databases.Postgres: {"DROP SCHEMA ten CASCADE", `ALTER SCHEMA "ten" RENAME TO nine`},
		databases.MySQL:    {"DROP DATABASE ten", "DROP SCHEMA IF EXISTS `ten`", "DROP DATABASE SHOP"},
	} {
		r, err := New(d, []Table{{Name: "books", Schema: "shop", Ledger: true}})
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range queries {
			if p := r.WithLedgerSchema("ten").Plan(query); p.Verdict != guard.Refuse {
				t.Errorf("%v: %s: %v, want refuse", d, query, p.Verdict)
			}
			if p := r.Plan(query); !strings.Contains(query, "SHOP") && p.Verdict != guard.Pass {
				t.Errorf("%v: %s: %v, want pass where the ledger is elsewhere", d, query, p.Verdict)
			}
		}
	}
}

// Such a setting may be hidden from the parser: the name is an argument, or composed, or in a text that is executed.
func TestSettingsThatAreNotShown(t *testing.T) {
	r, err := New(databases.Postgres, []Table{{Name: "books", Ledger: true}})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"$1::regclass", "$1 || ''", "($1)", "'session_' || 'replication_role'", "'session_'\n'replication_role'", `E'session\x5freplication_role'`, `U&'session\005freplication_role'`,
		"CAST('x' AS text)", "format('%s', $1)", "('x')", "name", "(SELECT name FROM pens)", "setting_name => 'app.user'", "'app.user' COLLATE \"C\"", "'app.user'::text || ''", "lower('X')"}
	for _, name := range names {
		for _, call := range []string{"set_config(@, $2, false)", "pg_catalog.set_config(@, 'x', true)", `"set_config"(@, 'x', true)`, `U&"set\005fconfig"(@, 'x', true)`, "SET_CONFIG /* */ (@, 'x', true)",
			"query_to_xml(@, true, false, '')", "pg_catalog.ts_stat(@)", "ts_rewrite('a', @)", "crosstab('SELECT 1', @)"} {
			call = strings.ReplaceAll(call, "@", name)
			queries := []string{"SELECT " + call, "VALUES (" + call + ")", "UPDATE pens SET x = " + call, "INSERT INTO pens SELECT " + call, "WITH w AS (SELECT " + call + ") DELETE FROM pens", "PREPARE p AS SELECT " + call,
				"DECLARE c CURSOR FOR SELECT " + call, "COPY (SELECT " + call + ") TO STDOUT", "CREATE TABLE t AS SELECT " + call, "EXPLAIN ANALYZE SELECT " + call, "SELECT 1; SELECT " + call, "SELECT * FROM " + call + " AS f"}
			if !strings.Contains(call, "$") {
				queries = append(queries, "DO $do$BEGIN PERFORM "+call+"; END$do$")
			}
			for _, query := range queries {
				if p := r.Plan(query); p.Verdict != guard.Refuse {
					t.Errorf("%s: %v, want refuse", query, p.Verdict)
				}
			}
		}
	}
	for _, query := range []string{
		"UPDATE pg_settings SET setting = $1 WHERE name = $2", "UPDATE ONLY (pg_catalog.pg_settings) AS s SET setting = 'x'", `WITH w AS (UPDATE "pg_settings" SET setting = 'x' RETURNING 1) SELECT 1`,
		"SELECT query_to_xml('SELECT set_config(''a'' || ''b'', ''x'', false)', true, false, '')", "SELECT * FROM ts_stat('SELECT v FROM query_to_xml(''x'')')", `SELECT ts_stat('SELECT U&"x"')`,
		"PREPARE p AS SELECT set_config($1, 'x', true)", "SELECT query_to_xml(query => $1)", "SELECT query_to_xml($1, true, false, '')", "SELECT ts_stat($1::text)", "SELECT ts_rewrite('a', $1)", "SELECT * FROM crosstab('SELECT 1', $1)", `SELECT "set_config"($1, 'x', true)`, "SELECT set_config()", "SELECT set_config(VARIADIC $1)",
	} {
		if p := r.Plan(query); p.Verdict != guard.Refuse {
			t.Errorf("%s: %v, want refuse", query, p.Verdict)
		}
	}
	for _, query := range []string{
		"SELECT set_config($1, $2, true)", "SELECT set_config('app.user', $1, true)", "SELECT pg_catalog.set_config('app.user'::text, $1::text, true)", "SELECT set_config($$app.user$$, 'x', true), set_config(E'app.x', $1, false)", "SELECT set_config FROM pens",
		"SELECT name, setting FROM pg_settings WHERE name = $1", "SELECT setting FROM pens, pg_settings FOR UPDATE OF pens", "SELECT query_to_xml('SELECT * FROM books', true, false, '')", "SELECT * FROM ts_stat('SELECT v FROM books')", "SELECT ts_rewrite($1, $2, $3)",
		"DO $$BEGIN PERFORM set_config('app.user', 'x', true); END$$", "SELECT current_setting($1)", "UPDATE pens SET x = (SELECT setting FROM pg_settings WHERE name = $1)",
	} {
		if p := r.Plan(query); p.Verdict != guard.Pass {
			t.Errorf("%s: %v (%s), want pass", query, p.Verdict, p.Refusal.Reason)
		}
	}
}

// If an argument names a setting, the plan tells the caller to check it.
func TestSettingsThatArgumentsName(t *testing.T) {
	r, err := New(databases.Postgres, []Table{{Name: "books", Ledger: true}})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string][]int{
		"SELECT set_config($1, $2, true)":                                             {1},
		"SELECT pg_catalog.set_config($2::text, $1, true), SET_CONFIG($12, '', true)": {2, 12},
		"UPDATE pens SET x = set_config($3, 'x', true)":                               {3},
		"DECLARE c CURSOR FOR SELECT set_config($1, 'x', true)":                       {1}, // bound at DECLARE
		"WITH s AS (SELECT set_config($1, 'x', true)) SELECT * FROM s":                {1},
		"UPDATE books SET price = 1 WHERE set_config($1, 'x', true) = 'x'":            {1},
	} {
		if p := r.Plan(query); p.Verdict == guard.Refuse || !slices.Equal(p.Settings, want) {
			t.Errorf("%s: %v %v (%s), want %v", query, p.Verdict, p.Settings, p.Refusal.Reason, want)
		}
	}
}
