package setup_test

import (
	"bytes"
	"database/sql"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
	"github.com/sqlfence/sqlfence/verify"
)

// losing are statements by which an application's role tries to lower, delete or rename a token, or to drop what
// prevents this.
var losing = map[sqlfence.Dialect][]string{
	sqlfence.Postgres: {
		"UPDATE fencing_tokens SET token = 1 WHERE name = 'books'", "UPDATE fencing_tokens SET name = 'other' WHERE name = 'books'",
		"DELETE FROM fencing_tokens WHERE name = 'books'", "TRUNCATE fencing_tokens", "DROP TABLE fencing_tokens",
		"INSERT INTO fencing_tokens VALUES ('books', 1) ON CONFLICT (name) DO UPDATE SET token = excluded.token",
		"ALTER TABLE fencing_tokens DISABLE TRIGGER sqlfence_turn_v1", "ALTER TABLE fencing_tokens RENAME TO other", "SET session_replication_role = replica",
		"DROP TRIGGER sqlfence_turn_v1 ON fencing_tokens", "DROP FUNCTION sqlfence_turn_v1 CASCADE",
		"CREATE OR REPLACE FUNCTION sqlfence_turn_v1() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
	},
	sqlfence.MySQL: {
		"UPDATE fencing_tokens SET token = 1 WHERE name = 'books'", "UPDATE IGNORE fencing_tokens SET name = 'other' WHERE name = 'books'",
		"DELETE FROM fencing_tokens WHERE name = 'books'", "TRUNCATE fencing_tokens", "DROP TABLE fencing_tokens",
		"INSERT INTO fencing_tokens VALUES ('books', 1) ON DUPLICATE KEY UPDATE token = VALUES(token)", "REPLACE INTO fencing_tokens VALUES ('books', 1)",
		"DROP TRIGGER sqlfence_ledger_update_v1", "RENAME TABLE fencing_tokens TO others", "ALTER TABLE fencing_tokens DROP COLUMN token",
	},
}

// A role with the privileges of docs/privileges.md works whether its Setup may create the ledger's triggers or not.
// Without the permission Setup logs a warning, and verify.Check reports the missing triggers. Once the owner has
// created them, the role can't get past them.
func TestTheLedgerIsKeptFromARole(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect == sqlfence.SQLite {
			t.Skip("no roles in SQLite")
		}
		holder := parts[slices.IndexFunc(parts, func(p part) bool { return p.name == "lease holder" })]
		holder.own = []string{"SELECT ON books"} // verify.Check needs this
		r := newRole(t, b, holder)
		for _, drop := range map[sqlfence.Dialect][]string{
			sqlfence.Postgres: {"DROP FUNCTION IF EXISTS " + sqltext.LedgerFunction + ", " + sqltext.LedgerTrigger + " CASCADE"},
			sqlfence.MySQL: {"DROP TRIGGER IF EXISTS sqlfence_ledger_update_v1", "DROP TRIGGER IF EXISTS sqlfence_ledger_delete_v1",
				"DROP TRIGGER IF EXISTS sqlfence_ledger_first_update_v1", "DROP TRIGGER IF EXISTS sqlfence_ledger_first_insert_v1"},
		}[b.Dialect] {
			harness.MustExec(t, r.owner, drop)
		}
		b.AsWritten = true // or the Base would change the texts of verify.Check's queries
		bare, owner, role := b.Raw(t, r.source), b.Fenced(t, r.ownerSource, harness.Books(sqlfence.Ledger())), b.Fenced(t, r.source, harness.Books(sqlfence.Ledger()))

		if logged := r.works(t); !strings.Contains(logged, "level=WARN") || !strings.Contains(logged, "triggers that keep tokens from falling") {
			t.Errorf("Setup without the triggers logged %q", logged)
		}
		if found := codesOf(t, owner); !slices.Contains(found, "wrong-ledger") {
			t.Errorf("verify.Check by the owner, without the triggers: %q", found)
		}
		// Without the privilege TRIGGER a role of MySQL doesn't see triggers.
		if want, found := map[sqlfence.Dialect]string{sqlfence.Postgres: "wrong-ledger", sqlfence.MySQL: "unseen"}[b.Dialect], codesOf(t, role); !slices.Contains(found, want) {
			t.Errorf("verify.Check by the role, without the triggers: %q, want %s", found, want)
		}
		if _, err := bare.Exec(losing[b.Dialect][0]); err != nil {
			t.Errorf("without the triggers: %v", err) // or the refusals below would prove nothing
		}

		if err := harness.NewStore(t, r.owner).Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		harness.MustExec(t, r.owner, "UPDATE fencing_tokens SET token = token + 100 WHERE name = 'books'")
		r.works(t)
		if found := codesOf(t, owner); slices.Contains(found, "wrong-ledger") {
			t.Errorf("verify.Check by the owner, with the triggers: %q", found)
		}
		before := harness.LedgerRows(t, r.owner)
		for _, granted := range []bool{false, true} {
			if granted {
				harness.MustExec(t, r.owner, "GRANT DELETE ON fencing_tokens TO "+r.name) // a holder doesn't need it
			}
			for _, query := range losing[b.Dialect] {
				_, err := bare.Exec(query)
				if err == nil {
					t.Errorf("%s: done", query)
				}
				if strings.Contains(query, "'books'") && granted && !harness.IsKept(err) {
					t.Errorf("%s: %v, want the triggers' refusal", query, err)
				}
				harness.WantLedger(t, r.owner, before...)
			}
		}
	})
}

// works has the role run Setup, issue and adopt tokens, and hold leases. It returns what Setup logged.
func (r *role) works(t *testing.T) string {
	t.Helper()
	var logged bytes.Buffer
	store := harness.NewStore(t, r.db, tokens.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
	if err := store.Setup(t.Context()); err != nil {
		t.Errorf("Setup: %v", err)
	}
	if err := r.issue(t.Context()); err != nil {
		t.Errorf("issue: %v", err)
	}
	if err := r.lease(t.Context()); err != nil {
		t.Errorf("leases: %v", err)
	}
	return logged.String()
}

func codesOf(t *testing.T, db *sql.DB) (codes []string) {
	t.Helper()
	found, err := verify.Check(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		codes = append(codes, f.Code)
	}
	return codes
}
