package verify_test

import (
	"crypto/rand"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/verify"
)

// withCode returns the findings with a code.
func withCode(found []verify.Finding, code string) []verify.Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f verify.Finding) bool { return f.Code != code })
}

// saying returns the findings whose problem contains part.
func saying(found []verify.Finding, part string) []verify.Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f verify.Finding) bool { return !strings.Contains(f.Problem, part) })
}

// wantOne fails the test unless there is one finding, of this severity and code.
func wantOne(t *testing.T, found []verify.Finding, severity slog.Level, code string) {
	t.Helper()
	if len(found) != 1 || found[0].Level != severity || found[0].Code != code {
		t.Errorf("found %v, want one %v: %s", found, severity, code)
	}
}

func wantProblem(t *testing.T, found []verify.Finding, part string) {
	t.Helper()
	for _, f := range found {
		if !strings.Contains(f.Problem, part) {
			t.Errorf("%v, want %q", f, part)
		}
	}
}

// Check reports settings of the session.
func TestSettings(t *testing.T) {
	pgx := harness.Bases[1]
	for setting, want := range map[string]verify.Finding{
		"synchronous_commit=off": {Level: slog.LevelWarn, Code: "setting"},
	} {
		t.Run(setting, func(t *testing.T) {
			w := newWorld(t, pgx)
			name, value, _ := strings.Cut(setting, "=")
			w.dsn += "&" + name + "=" + url.QueryEscape(value)
			wantOne(t, w.news(t, harness.Books(both...)), want.Level, want.Code)
		})
	}
	t.Run("fsync", func(t *testing.T) {
		w := newWorld(t, pgx)
		var on string
		if err := w.plain.QueryRow("SHOW fsync").Scan(&on); err != nil {
			t.Fatal(err)
		}
		if found := saying(w.fresh, "fsync"); on == "off" {
			wantOne(t, found, slog.LevelInfo, "setting")
			wantProblem(t, found, "a crash of the machine")
		} else if len(found) > 0 {
			t.Errorf("found %v", found)
		}
	})
	t.Run("session_replication_role", func(t *testing.T) {
		w := newWorld(t, pgx)
		rules := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Sealed()}
		w.seal(t, rules...)
		sealed := w.dsn
		w.dsn += "&session_replication_role=replica"
		wantOne(t, w.news(t, harness.Books(rules...)), slog.LevelWarn, "setting")
		w.dsn = sealed
		role := "replica_" + strings.ToLower(rand.Text())
		w.exec(t, "CREATE ROLE "+role)
		defer w.exec(t, "DROP ROLE "+role)
		w.exec(t, "DO $$BEGIN EXECUTE format('ALTER ROLE "+role+" IN DATABASE %I SET session_replication_role = replica', current_database()); END$$")
		found := w.news(t, harness.Books(rules...))
		wantOne(t, found, slog.LevelWarn, "setting")
		if len(found) == 1 && !strings.Contains(found[0].Problem, "is that of role "+role+".") {
			t.Errorf("found %v", found)
		}
	})
	t.Run("idle in transaction", func(t *testing.T) {
		w := newWorld(t, pgx)
		wantOne(t, saying(w.fresh, "idle_in_transaction"), slog.LevelInfo, "setting")
		w.dsn += "&idle_in_transaction_session_timeout=60000"
		if left := saying(w.verify(t, harness.Books(both...)), "idle_in_transaction"); len(left) > 0 {
			t.Errorf("found %v", left)
		}
		if found := saying(newWorld(t, pgx).verify(t, harness.Books(sqlfence.RowFence("fence_token"))), "idle_in_transaction"); len(found) > 0 {
			t.Errorf("without a ledger: found %v", found)
		}
	})
}

func TestSettingsOfMySQL(t *testing.T) {
	with := func(t *testing.T, name, value string) *world {
		w := newWorld(t, harness.MySQL)
		w.dsn = harness.MySQLWith(t, w.dsn, func(c *mysql.Config) { c.Params = map[string]string{name: value} })
		return w
	}
	t.Run("sql_mode", func(t *testing.T) {
		w := with(t, "sql_mode", "''")
		wantOne(t, w.news(t, harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Key("id"))), slog.LevelWarn, "setting")
		if found := w.news(t, harness.Books(both...)); len(found) > 0 {
			t.Errorf("without Key: found %v", found)
		}
	})
	t.Run("binlog_format", func(t *testing.T) {
		w := with(t, "binlog_format", "'STATEMENT'")
		var name, on string
		if err := w.plain.QueryRow("SHOW VARIABLES LIKE 'log_bin'").Scan(&name, &on); err != nil {
			t.Fatal(err)
		}
		want := slog.LevelInfo
		if on == "ON" {
			want = slog.LevelWarn
		}
		wantOne(t, w.news(t, harness.Books(both...)), want, "setting")
	})
	t.Run("durability", func(t *testing.T) {
		w := newWorld(t, harness.MySQL)
		var name, level string
		if err := w.plain.QueryRow("SHOW VARIABLES LIKE 'innodb_flush_log_at_trx_commit'").Scan(&name, &level); err != nil {
			t.Fatal(err)
		}
		switch found := saying(w.fresh, "innodb_flush_log_at_trx_commit"); level {
		case "1":
			if len(found) > 0 {
				t.Errorf("found %v", found)
			}
		default: // the servers that the tests start have another level
			wantOne(t, found, slog.LevelInfo, "setting")
			wantProblem(t, found, "a crash of the machine")
		}
	})
}
