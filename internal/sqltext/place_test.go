package sqltext

import (
	"strings"
	"testing"
)

// sqlfence's tables get the schema everywhere in a statement; constants, columns and qualified names don't.
func TestPlaceQualifiesOnlyOwnTables(t *testing.T) {
	for _, test := range []struct {
		d          Dialect
		text, want string
	}{
		{Postgres, "UPDATE fencing_tokens SET token = fencing_tokens.token", `UPDATE "T""n".fencing_tokens SET token = "T""n".fencing_tokens.token`},
		{Postgres, "SELECT 'fencing_tokens', \"rowlocks\", books.rowlocks, old_rowlocks, rowlocks_2 -- rowlocks isn't\nFROM rowlocks",
			"SELECT 'fencing_tokens', \"rowlocks\", books.rowlocks, old_rowlocks, rowlocks_2 -- rowlocks isn't\nFROM \"T\"\"n\".rowlocks"},
		{Postgres, "SELECT pg_catalog.to_regclass('fencing_leases')", `SELECT pg_catalog.to_regclass('"T""n".fencing_leases')`},
		{Postgres, "SELECT '", "SELECT '"},
		{MySQL, "SELECT t.token FROM fencing_tokens AS t WHERE t.name = _utf8mb4'fencing_tokens'", "SELECT t.token FROM `T\"n`.fencing_tokens AS t WHERE t.name = _utf8mb4'fencing_tokens'"},
		{MySQL, "SELECT 1 FROM x WHERE table_schema = DATABASE() AND t.table_name = _utf8mb4'rowlocks'", "SELECT 1 FROM x WHERE table_schema = _utf8mb4'T\"n' AND t.table_name = _utf8mb4'rowlocks'"},
		{MySQL, "SELECT 1 FROM x WHERE table_schema = COALESCE(NULL, DATABASE()) AND table_name = _utf8mb4'rowlocks'", "SELECT 1 FROM x WHERE table_schema = COALESCE(NULL, _utf8mb4'T\"n') AND table_name = _utf8mb4'rowlocks'"},
		{MySQL, "SELECT 1 FROM x WHERE table_schema = DATABASE() AND table_name = _utf8mb4'books'", "SELECT 1 FROM x WHERE table_schema = DATABASE() AND table_name = _utf8mb4'books'"},
	} {
		if got := Place(test.d, `T"n`, test.text); got != test.want {
			t.Errorf("%s is\n%s, want\n%s", test.text, got, test.want)
		}
		if got := Place(test.d, "", test.text); got != test.text {
			t.Errorf("without a schema %s is %s", test.text, got)
		}
	}
	placed := Place(Postgres, "ten", Postgres.Capabilities().CreateLedgerFunction)
	if strings.Contains(placed, "to_regclass('fencing_tokens')") || strings.Count(placed, `"ten"`) != 1 {
		t.Errorf("the function's installation is\n%s", placed)
	}
}

// MayChangeSchema recognises statements that may change the session's schema, and no statement that only reads and
// writes rows.
func TestMayMove(t *testing.T) {
	for _, test := range []struct {
		d    Dialect
		text string
		more bool
		want bool
	}{
		{Postgres, "SET search_path = ten", true, true},
		{Postgres, "set local Search_Path to ten", true, true},
		{Postgres, "SELECT set_config('search_path', 'ten', false)", false, true},
		{Postgres, "SET SESSION SCHEMA 'ten'", true, true},
		{Postgres, "SET /* " + strings.Repeat("x", 300) + " */ SCHEMA 'ten'", true, true},
		{Postgres, "SELECT set_config($1, $2, false)", false, true},
		{Postgres, `SELECT set_config(E'search\x5fpath', 'ten', false)`, false, true},
		{Postgres, "SELECT set_config('search'\n'_path', 'ten', false)", false, true},
		{Postgres, "SELECT set_config('search' || '_path', 'ten', false)", false, true},
		{Postgres, "PREPARE mv AS SELECT set_config('search' || '_path', 'ten', false)", true, true},
		{Postgres, `SET U&"search\005fpath" = ten`, true, true},
		{Postgres, "UPDATE pg_settings SET setting = $2 WHERE name = $1", false, true},
		{Postgres, "SELECT set_config('app.user', $1, true)", false, false},
		{Postgres, "SELECT set_config('Role', 'ten', true)", false, true},
		{Postgres, "SELECT set_config('session_authorization', $1, false)", false, true},
		{Postgres, "RESET ROLE", true, true},
		{Postgres, "SELECT name FROM pg_settings", false, false},
		{Postgres, "DISCARD ALL", true, true},
		{Postgres, "RESET ALL", true, true},
		{Postgres, "SET work_mem = '4MB'", true, false},
		{Postgres, "UPDATE a_b SET schema = 1, research_pathway = _", false, true}, // in doubt
		{Postgres, "UPDATE a_b SET schema = 1", false, false},
		{MySQL, "USE ten", true, true},
		{MySQL, "/*!USE ten*/", true, true},
		{MySQL, "SELECT 1 FROM t USE INDEX (i)", false, false},
		{MySQL, "SET sql_mode = ''", true, false},
		{SQLite, "ATTACH 'x' AS y", true, false},
	} {
		if got := test.d.MayChangeSchema(test.text, test.more); got != test.want {
			t.Errorf("%s: %t", test.text, got)
		}
	}
}

// An application's setting has a dot in its name; no setting that guards depend on has a dot.
func TestIsApplicationSetting(t *testing.T) {
	for name, want := range map[string]bool{
		"app.user": true, "App.tenant_id": true, "a.b.c": true,
		"": false, "role": false, "search_path": false, "session_replication_role": false, "standard_conforming_strings": false,
		"sqlfence.seen": false, "SQLFENCE.turns": false, "app. user": false, "äpp.user": false, "app.us\x00er": false,
	} {
		if got := IsApplicationSetting(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}
