package verify_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A ledger with or without a record of issuers gives no finding. A record that no longer works gives one.
func TestIssuers(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		registered := sqlfence.WithTable("books", both...)
		store := harness.NewStore(t, w.plain)
		if err := store.RecordIssuers(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := func(what string, level slog.Level, says string) {
			t.Helper()
			found := w.news(t, registered)
			switch {
			case says == "" && len(found) == 0:
			case len(found) != 1 || found[0].Level != level || found[0].Code != "wrong-ledger" || !strings.Contains(found[0].Problem, says):
				t.Errorf("%s: found %v", what, found)
			}
		}
		want("the record", 0, "")
		for _, step := range map[sqlfence.Dialect][]struct{ statement, says string }{
			sqlfence.Postgres: {
				{"DROP TRIGGER sqlfence_issued_v1 ON fencing_tokens", "sqlfence_issued_v1 is missing"},
				{"ALTER TABLE fencing_tokens DISABLE TRIGGER sqlfence_issued_v1", "sqlfence_issued_v1 isn't what RecordIssuers creates"},
				{"ALTER TABLE fencing_tokens ALTER COLUMN issued_by DROP DEFAULT", "the column issued_by has no default"},
			},
			sqlfence.MySQL: {
				{"DROP TRIGGER sqlfence_ledger_issued_update_v1", "sqlfence_ledger_issued_update_v1 is missing"},
				{"DROP TRIGGER sqlfence_ledger_issued_insert_v1", "sqlfence_ledger_issued_insert_v1 is missing"},
			},
			sqlfence.SQLite: {
				{"DROP TRIGGER sqlfence_ledger_issued_update_v1", "sqlfence_ledger_issued_update_v1 is missing"},
				{"DROP TRIGGER sqlfence_ledger_issued_insert_v1", "sqlfence_ledger_issued_insert_v1 is missing"},
			},
		}[w.Dialect] {
			w.exec(t, step.statement)
			want(step.statement, slog.LevelWarn, step.says)
			if err := store.RecordIssuers(t.Context()); err != nil {
				t.Fatal(err)
			}
			want("again", 0, "")
		}
		if w.Dialect == sqlfence.Postgres {
			w.exec(t, "CREATE OR REPLACE FUNCTION sqlfence_issued_v1() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS 'BEGIN RETURN NEW; END'")
			want("another function", slog.LevelWarn, "isn't what RecordIssuers creates")
		}
		if w.Dialect == sqlfence.MySQL { // other databases refuse to drop the column
			w.exec(t, "ALTER TABLE fencing_tokens DROP COLUMN issued_by")
			want("without the column", slog.LevelError, "no token can be taken")
		}
		if err := store.RecordIssuers(t.Context()); err != nil {
			t.Fatal(err)
		}
		want("at the end", 0, "")
	})
}
