package tokens_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// lowering are statements with which a client decreases a token, deletes a name or renames it. The ledger has books at
// 9 and pens at 3.
var lowering = map[sqlfence.Dialect][]string{
	sqlfence.Postgres: {
		"UPDATE fencing_tokens SET token = 1 WHERE name = 'books'", "UPDATE fencing_tokens SET token = token - 1", "UPDATE fencing_tokens SET token = -9",
		"UPDATE fencing_tokens SET name = 'other' WHERE name = 'books'", "UPDATE fencing_tokens SET name = 'other', token = token + 1 WHERE name = 'books'",
		"INSERT INTO fencing_tokens VALUES ('books', 1) ON CONFLICT (name) DO UPDATE SET token = excluded.token",
		"INSERT INTO fencing_tokens VALUES ('books', 10) ON CONFLICT (name) DO UPDATE SET name = 'other'",
		"DELETE FROM fencing_tokens WHERE name = 'books'", "DELETE FROM fencing_tokens", "TRUNCATE fencing_tokens", "TRUNCATE fencing_tokens CASCADE",
		"WITH gone AS (DELETE FROM fencing_tokens RETURNING name, token) INSERT INTO fencing_tokens SELECT name || '-2', token FROM gone",
		"DO $$BEGIN UPDATE fencing_tokens SET token = 0; EXCEPTION WHEN division_by_zero THEN NULL; END$$",
		"BEGIN; SET LOCAL session_replication_role = replica; UPDATE fencing_tokens SET token = 1; COMMIT",
	},
	sqlfence.MySQL: {
		"UPDATE fencing_tokens SET token = 1 WHERE name = 'books'", "UPDATE fencing_tokens SET token = token - 1", "UPDATE IGNORE fencing_tokens SET token = 1",
		"UPDATE fencing_tokens SET name = 'other' WHERE name = 'books'", "UPDATE IGNORE fencing_tokens SET name = 'pens' WHERE name = 'other' OR name = 'Books' OR LENGTH(name) = 5",
		"UPDATE fencing_tokens AS t JOIN fencing_tokens AS o ON o.name = 'pens' SET t.token = o.token WHERE t.name = 'books'",
		"INSERT INTO fencing_tokens VALUES ('books', 1) ON DUPLICATE KEY UPDATE token = VALUES(token)", "INSERT IGNORE INTO fencing_tokens VALUES ('books', 1) ON DUPLICATE KEY UPDATE token = 1",
		"REPLACE INTO fencing_tokens VALUES ('books', 1)", "REPLACE INTO fencing_tokens (name, token) SELECT name, 1 FROM fencing_tokens",
		"DELETE FROM fencing_tokens WHERE name = 'books'", "DELETE IGNORE FROM fencing_tokens", "DELETE t FROM fencing_tokens AS t JOIN fencing_tokens AS o ON o.name = t.name",
	},
	sqlfence.SQLite: {
		"UPDATE fencing_tokens SET token = 1 WHERE name = 'books'", "UPDATE fencing_tokens SET token = token - 1", "UPDATE OR IGNORE fencing_tokens SET token = 1", "UPDATE OR REPLACE fencing_tokens SET name = 'pens' WHERE name = 'books'",
		"UPDATE fencing_tokens SET name = 'other' WHERE name = 'books'", "UPDATE OR REPLACE fencing_tokens SET rowid = (SELECT rowid FROM fencing_tokens WHERE name = 'books') WHERE name = 'pens'",
		"INSERT INTO fencing_tokens VALUES ('books', 1) ON CONFLICT (name) DO UPDATE SET token = excluded.token", "INSERT INTO fencing_tokens VALUES ('books', 20) ON CONFLICT (name) DO UPDATE SET token = 2",
		"REPLACE INTO fencing_tokens VALUES ('books', 1)", "INSERT OR REPLACE INTO fencing_tokens VALUES ('books', 8)", "REPLACE INTO fencing_tokens SELECT name, 0 FROM fencing_tokens",
		"REPLACE INTO fencing_tokens (rowid, name, token) SELECT rowid, 'other', 0 FROM fencing_tokens WHERE name = 'books'", "INSERT OR REPLACE INTO fencing_tokens (rowid, name, token) SELECT rowid, 'pens', 90 FROM fencing_tokens WHERE name = 'books'",
		"DELETE FROM fencing_tokens WHERE name = 'books'", "DELETE FROM fencing_tokens", "WITH x AS (SELECT 1) DELETE FROM fencing_tokens WHERE 1",
		// SQLite sorts every text and blob above the integers, and a guard reads such a token as its leading digits.
		"UPDATE fencing_tokens SET token = '5x' WHERE name = 'books'", "UPDATE fencing_tokens SET token = x'35'", "UPDATE fencing_tokens SET token = 1e300",
		"REPLACE INTO fencing_tokens VALUES ('books', '5x')", "INSERT INTO fencing_tokens VALUES ('other', 'zz')", "INSERT INTO fencing_tokens VALUES ('other', 0.5)",
		"INSERT INTO fencing_tokens VALUES ('books', 1) ON CONFLICT (name) DO UPDATE SET token = x'3939'",
	},
}

// raising are statements by which a client without sqlfence takes or increments tokens, as before.
var raising = map[sqlfence.Dialect][]string{
	sqlfence.Postgres: {
		"UPDATE fencing_tokens SET token = token + 1 WHERE name = 'books'", "UPDATE fencing_tokens SET token = token",
		"INSERT INTO fencing_tokens VALUES ('books', 1) ON CONFLICT (name) DO UPDATE SET token = fencing_tokens.token + 1", "INSERT INTO fencing_tokens VALUES ('books', 1) ON CONFLICT DO NOTHING",
	},
	sqlfence.MySQL: {
		"UPDATE fencing_tokens SET token = token + 1 WHERE name = 'books'", "UPDATE fencing_tokens SET token = token",
		"INSERT INTO fencing_tokens VALUES ('books', 1) ON DUPLICATE KEY UPDATE token = token + 1", "INSERT IGNORE INTO fencing_tokens VALUES ('books', 1)",
	},
	sqlfence.SQLite: {
		"UPDATE fencing_tokens SET token = token + 1 WHERE name = 'books'", "UPDATE fencing_tokens SET token = token", "INSERT OR IGNORE INTO fencing_tokens VALUES ('books', 1)",
		"INSERT INTO fencing_tokens VALUES ('books', 1) ON CONFLICT (name) DO UPDATE SET token = fencing_tokens.token + 1", "REPLACE INTO fencing_tokens VALUES ('books', 1000)",
		"INSERT INTO fencing_tokens VALUES ('books', 1) ON CONFLICT (name) DO NOTHING",
	},
}

// ledgerOf returns the ledger as "name:token".
func ledgerOf(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows, err := db.Query("SELECT name, token FROM fencing_tokens WHERE name <> '' ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var name string
		var token int64
		if err := rows.Scan(&name, &token); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s:%d", name, token))
	}
	return strings.Join(all, " ")
}

// No client can decrease a token of the ledger, delete a name or rename it. Clients can still increase tokens, and the
// Store's methods still work.
func TestG8TheDatabaseKeepsTheLedger(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		source := b.DSN(t)
		store, bare := harness.NewStore(t, b.Fenced(t, source)), b.Raw(t, source)
		for range 2 {
			if err := store.Setup(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 9}); err != nil {
			t.Fatal(err)
		}
		if err := store.Adopt(t.Context(), sqlfence.Token{Name: "pens", Value: 3}); err != nil {
			t.Fatal(err)
		}
		for _, query := range lowering[b.Dialect] {
			_, err := bare.Exec(query)
			skips := b.Dialect == sqlfence.MySQL && err == nil && strings.Contains(query, "IGNORE") // MySQL, if the new name exists
			if !skips && !harness.IsKept(err) {
				t.Errorf("%s: %v, want a refusal", query, err)
			}
			if strings.HasPrefix(query, "BEGIN") {
				bare = b.Raw(t, source) // the old connection has an open transaction
			}
			if got := ledgerOf(t, bare); got != "books:9 pens:3" {
				t.Fatalf("%s: the ledger has %s", query, got)
			}
		}
		for _, query := range raising[b.Dialect] {
			if _, err := bare.Exec(query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
		}
		before, err := store.Current(t.Context(), "books")
		if err != nil || before.Value < 11 {
			t.Fatalf("%v, %v", before, err)
		}
		if token, err := store.Issue(t.Context(), "books"); err != nil || token.Value != before.Value+1 {
			t.Errorf("Issue: %v, %v, want %d", token, err, before.Value+1)
		}
		if err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 2}); !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("Adopt of a lower one: %v, want ErrStale", err)
		}
		if err := store.Ensure(t.Context(), "books", "new"); err != nil {
			t.Errorf("Ensure: %v", err)
		}
		for name, f := range map[string]func() error{
			"Repair": func() error { _, err := store.Repair(t.Context(), 5000); return err },
			"Rotate": func() error { _, err := store.Rotate(t.Context(), "books"); return err },
		} {
			if err := f(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Setup repairs a trigger that is missing or has another text.
func TestSetupPutsTheTriggersRight(t *testing.T) {
	for dialect, ruin := range map[sqlfence.Dialect][][]string{
		sqlfence.Postgres: {
			{"DROP TRIGGER sqlfence_turn_v1 ON fencing_tokens"}, {"ALTER TABLE fencing_tokens DISABLE TRIGGER ALL"}, {"ALTER TABLE fencing_tokens ENABLE REPLICA TRIGGER sqlfence_turn_v1"},
			{"CREATE OR REPLACE FUNCTION sqlfence_turn_v1() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"},
			{"DROP TRIGGER sqlfence_turn_v1 ON fencing_tokens", "CREATE TRIGGER sqlfence_turn_v1 AFTER UPDATE OR DELETE ON fencing_tokens FOR EACH ROW WHEN (false) EXECUTE FUNCTION sqlfence_turn_v1()", "ALTER TABLE fencing_tokens ENABLE ALWAYS TRIGGER sqlfence_turn_v1"},
			{"DROP TRIGGER sqlfence_turn_v1 ON fencing_tokens", "CREATE TRIGGER sqlfence_turn_v1 AFTER DELETE OR UPDATE OF name ON fencing_tokens FOR EACH ROW EXECUTE FUNCTION sqlfence_turn_v1()", "ALTER TABLE fencing_tokens ENABLE ALWAYS TRIGGER sqlfence_turn_v1"},
		},
		sqlfence.MySQL: {
			{"DROP TRIGGER sqlfence_ledger_update_v1"}, {"DROP TRIGGER sqlfence_ledger_update_v1", "DROP TRIGGER sqlfence_ledger_delete_v1"},
			{"DROP TRIGGER sqlfence_ledger_update_v1", "CREATE TRIGGER sqlfence_ledger_update_v1 AFTER UPDATE ON fencing_tokens FOR EACH ROW SET @x = 1"},
		},
		sqlfence.SQLite: {
			{"DROP TRIGGER sqlfence_ledger_update_v1"}, {"DROP TRIGGER sqlfence_ledger_update_v1", "CREATE TRIGGER sqlfence_ledger_update_v1 AFTER UPDATE ON fencing_tokens BEGIN SELECT 1; END"},
		},
	} {
		harness.EachDriver(t, func(t *testing.T, b harness.Base) {
			if b.Dialect != dialect {
				return
			}
			source := b.DSN(t)
			bare := b.Raw(t, source)
			store := harness.NewStore(t, bare)
			if err := store.Setup(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i, statements := range ruin {
				for _, query := range statements {
					harness.MustExec(t, bare, query)
				}
				name := fmt.Sprintf("books%d", i)
				harness.MustExec(t, bare, fmt.Sprintf("INSERT INTO fencing_tokens (name, token) VALUES ('%s', 9)", name))
				lower := fmt.Sprintf("UPDATE fencing_tokens SET token = token - 1 WHERE name = '%s'", name)
				harness.MustExec(t, bare, lower) // without the triggers the token falls
				if err := store.Setup(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := bare.Exec(lower); !harness.IsKept(err) {
					t.Errorf("%q, Setup: %v, want a refusal", statements, err)
				}
			}
		})
	}
}

// The triggers also protect an existing ledger that Setup didn't create.
func TestTheLedgerOfOthersIsKept(t *testing.T) {
	for dialect, creates := range map[sqlfence.Dialect][]string{
		sqlfence.Postgres: {"CREATE TABLE fencing_tokens (id serial, name varchar(200) UNIQUE, token integer, seen timestamptz DEFAULT now())"},
		sqlfence.MySQL: {
			"CREATE TABLE fencing_tokens (id bigint AUTO_INCREMENT PRIMARY KEY, name varbinary(600) NOT NULL UNIQUE, token bigint, note text)",
			"CREATE TABLE fencing_tokens (name varbinary(512) UNIQUE, token bigint)",
		},
		sqlfence.SQLite: {
			"CREATE TABLE fencing_tokens (id INTEGER PRIMARY KEY, name text UNIQUE, token integer)",
			"CREATE TABLE fencing_tokens (name text PRIMARY KEY, token integer) WITHOUT ROWID",
			"CREATE TABLE fencing_tokens (name text COLLATE NOCASE PRIMARY KEY, token integer)",
		},
	} {
		harness.EachDriver(t, func(t *testing.T, b harness.Base) {
			if b.Dialect != dialect {
				return
			}
			for _, create := range creates {
				bare := b.Raw(t, b.DSN(t))
				harness.MustExec(t, bare, "DROP TABLE IF EXISTS fencing_tokens")
				harness.MustExec(t, bare, create)
				harness.MustExec(t, bare, "INSERT INTO fencing_tokens (name, token) VALUES ('books', 9), ('pens', 3), ('inks', NULL)")
				store := harness.NewStore(t, bare)
				if err := store.Setup(t.Context()); err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"books", "inks", "new"} {
					if _, err := store.Issue(t.Context(), name); err != nil {
						t.Errorf("%s: Issue of %s: %v", create, name, err)
					}
				}
				queries := []string{"UPDATE fencing_tokens SET token = 1 WHERE name = 'books'", "UPDATE fencing_tokens SET token = NULL WHERE name = 'books'", "DELETE FROM fencing_tokens"}
				if strings.Contains(create, "NOCASE") {
					queries = append(queries, "REPLACE INTO fencing_tokens (name, token) VALUES ('Books', 1)", "REPLACE INTO fencing_tokens (name, token) SELECT upper(name), 1 FROM fencing_tokens WHERE name = 'books'")
				}
				if strings.Contains(create, "(name varbinary(512) UNIQUE") {
					queries = append(queries, "UPDATE fencing_tokens SET name = NULL WHERE name = 'books'", "INSERT INTO fencing_tokens (name, token) VALUES ('books', 1) ON DUPLICATE KEY UPDATE name = NULL")
				}
				for _, query := range queries {
					_, err := bare.Exec(query)
					skips := b.Dialect == sqlfence.MySQL && err == nil && strings.Contains(query, "IGNORE") // MySQL, if the new name exists
					if !skips && !harness.IsKept(err) {
						t.Errorf("%s: %s: %v, want a refusal", create, query, err)
					}
				}
			}
		})
	}
}
