package verify_test

import (
	"crypto/rand"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/verify"
)

// A role with few privileges gets its missing privileges as findings, unreadable objects as Notes, and no false
// finding.
func TestFewPrivileges(t *testing.T) {
	w := newWorld(t, harness.Bases[1])
	role := "sqlfence_" + strings.ToLower(rand.Text())
	w.exec(t, "CREATE ROLE "+role)
	t.Cleanup(func() {
		if _, err := w.plain.Exec("DROP OWNED BY " + role + "; DROP ROLE " + role); err != nil {
			t.Error(err)
		}
	})
	db := w.Fenced(t, w.dsn+"&role="+role, harness.Books(both...))
	w.exec(t, "GRANT SELECT (id, price), UPDATE (price) ON books TO "+role)
	found := checked(t, db)
	lacks := withCode(found, "missing-privilege")
	if len(lacks) != 2 || len(withCode(found, "unseen")) != 1 {
		t.Fatalf("found %v, want what books and the ledger lack, and that the marks can't be seen", found)
	}
	for _, f := range lacks {
		if f.Level != slog.LevelError {
			t.Errorf("every write fails, and it is no fault: %v", f)
		}
		if !strings.HasSuffix(f.SQL, " TO "+role) {
			t.Errorf("%s doesn't name the role %s", f.SQL, role)
		}
		w.exec(t, f.SQL)
	}
	for _, f := range checked(t, db) {
		if f.Level > slog.LevelInfo {
			t.Errorf("after the GRANTs: %v", f)
		}
	}
	if _, err := db.ExecContext(harness.Holding(t, 1), "UPDATE books SET price = 1"); err == nil {
		t.Error("a write passes under a token that nobody has issued")
	}

	// The owner gets a Note about other writers.
	notes := withCode(w.news(t, harness.Books(both...)), "other-writers")
	if len(notes) != 1 || notes[0].Level != slog.LevelInfo || !strings.Contains(notes[0].Problem, role) {
		t.Errorf("found %v, want that %s may write", notes, role)
	}
}

// Verify reports each role that may disable a seal's triggers in PostgreSQL, or create a later trigger, except
// superusers and the session's role.
func TestUnsealersOnPostgres(t *testing.T) {
	w := newWorld(t, harness.Bases[1])
	role := "sqlfence_" + strings.ToLower(rand.Text())
	w.exec(t, "CREATE ROLE "+role)
	t.Cleanup(func() {
		if _, err := w.plain.Exec("DROP OWNED BY " + role + "; DROP ROLE " + role); err != nil {
			t.Error(err)
		}
	})
	rules := append(slices.Clone(both), sqlfence.Sealed())
	w.seal(t, rules...)
	var self string
	if err := w.plain.QueryRow("SELECT CURRENT_USER").Scan(&self); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		query string
		told  bool
	}{
		{"GRANT SELECT, INSERT, UPDATE, DELETE ON books TO " + role, false},
		{"GRANT TRIGGER ON books TO " + role, true},
		{"REVOKE TRIGGER ON books FROM " + role, false},
		{"ALTER TABLE books OWNER TO " + role, true},
		{"ALTER TABLE books OWNER TO " + self, false},
	} {
		w.exec(t, step.query)
		found := saying(w.news(t, harness.Books(rules...)), "past the seal")
		if told := len(found) == 1 && found[0].Level == slog.LevelInfo && strings.Contains(found[0].Problem, role); told != step.told {
			t.Errorf("%s: found %v", step.query, found)
		}
	}
}

// user creates a user of MySQL with the password secret.
func (w *world) user(t *testing.T) string {
	t.Helper()
	user := "u" + strings.ToLower(rand.Text())[:20]
	w.exec(t, "CREATE USER "+user+"@'127.0.0.1' IDENTIFIED BY 'secret'")
	t.Cleanup(func() {
		if _, err := w.plain.Exec("DROP USER " + user + "@'127.0.0.1'"); err != nil {
			t.Error(err)
		}
	})
	return user
}

func TestFewPrivilegesOnMySQL(t *testing.T) {
	w := newWorld(t, harness.MySQL)
	user := w.user(t)
	w.exec(t, "GRANT SELECT (id, price), UPDATE (price) ON books TO "+user+"@'127.0.0.1'",
		"CREATE PROCEDURE raise_prices() UPDATE books SET price = price + 1", "GRANT EXECUTE ON PROCEDURE raise_prices TO "+user+"@'127.0.0.1'")
	db := w.Fenced(t, harness.MySQLWith(t, w.dsn, func(c *mysql.Config) { c.User, c.Passwd = user, "secret" }), harness.Books(both...))
	found := checked(t, db)
	for _, want := range []string{"ERROR missing-column books", "ERROR missing-ledger books"} { // it can't see them
		if !slices.Contains(codes(found), want) {
			t.Errorf("found %v, want %s", codes(found), want)
		}
	}
	if len(withCode(found, "unseen")) == 0 {
		t.Errorf("found %v, want that the routine can't be seen", found)
	}
	w.exec(t, "GRANT SELECT, UPDATE, INSERT (price), DELETE ON books TO "+user+"@'127.0.0.1'", "GRANT SELECT ON fencing_tokens TO "+user+"@'127.0.0.1'")
	found = slices.DeleteFunc(checked(t, db), func(f verify.Finding) bool { return f.Level == slog.LevelInfo })
	if len(found) != 1 || found[0].Code != "missing-privilege" || !strings.Contains(found[0].SQL, "INSERT (`fence_token`)") {
		t.Fatalf("found %v, want that it may not INSERT the mark", found)
	}
	if found[0].Level != slog.LevelWarn { // an UPDATE and a DELETE succeed
		t.Errorf("found %v, want a warning", found[0])
	}
	w.exec(t, found[0].SQL)
	if notes := withCode(w.news(t, harness.Books(both...)), "other-writers"); len(notes) != 1 || !strings.Contains(notes[0].Problem, user) {
		t.Errorf("found %v, want that %s may write", notes, user)
	}
}

// Changes that fire no triggers in MySQL require privileges that writers don't need. Verify reports the users with
// these privileges.
func TestPrivilegesPastSeals(t *testing.T) {
	w := newWorld(t, harness.MySQL)
	user := w.user(t)
	rules := append(slices.Clone(both), sqlfence.Sealed())
	w.seal(t, rules...)
	w.exec(t, "GRANT SELECT, INSERT, UPDATE, DELETE ON books TO "+user+"@'127.0.0.1'")
	writer := w.Raw(t, harness.MySQLWith(t, w.dsn, func(c *mysql.Config) { c.User, c.Passwd = user, "secret" }))
	for _, query := range []string{"TRUNCATE books", "DROP TRIGGER `sqlfence-seal:delete:books`", "ALTER TABLE books ADD COLUMN other int", "DROP TABLE books"} {
		if _, err := writer.Exec(query); err == nil || !strings.Contains(err.Error(), "denied") {
			t.Errorf("%s: %v", query, err)
		}
	}
	for _, privilege := range []string{"", "DROP", "ALTER", "TRIGGER"} {
		if privilege != "" {
			w.exec(t, "GRANT "+privilege+" ON books TO "+user+"@'127.0.0.1'")
		}
		found := saying(w.news(t, harness.Books(rules...)), "past the seal")
		if told := len(found) == 1 && found[0].Level == slog.LevelInfo && strings.Contains(found[0].Problem, user); told != (privilege != "") {
			t.Errorf("with %q: found %v", privilege, found)
		}
		if privilege == "DROP" {
			if _, err := writer.Exec("TRUNCATE books"); err != nil {
				t.Error(err)
			}
		}
		if privilege != "" {
			w.exec(t, "REVOKE "+privilege+" ON books FROM "+user+"@'127.0.0.1'")
		}
	}
}

// The advice about idle transactions names the application's role, if it is known, and never the operator's.
func TestIdleTimeoutIsAdvisedForTheApplicationsRole(t *testing.T) {
	w := newWorld(t, harness.Bases[1])
	advice := func(options ...sqlfence.Option) string {
		t.Helper()
		found := saying(w.verify(t, append(options, harness.Books(both...))...), "idle_in_transaction_session_timeout")
		if len(found) != 1 {
			t.Fatalf("found %v", found)
		}
		return found[0].SQL
	}
	const set = " SET idle_in_transaction_session_timeout = '1min'"
	if got := advice(); got != "ALTER ROLE <role>"+set {
		t.Errorf("where no role but the operator's may write: %s", got)
	}
	role := "sqlfence_" + strings.ToLower(rand.Text())
	w.exec(t, "CREATE ROLE "+role)
	t.Cleanup(func() {
		if _, err := w.plain.Exec("DROP OWNED BY " + role + "; DROP ROLE " + role); err != nil {
			t.Error(err)
		}
	})
	w.exec(t, "GRANT UPDATE ON books TO "+role)
	got := advice()
	if got != `ALTER ROLE "`+role+`"`+set {
		t.Errorf("where the role %s may write: %s", role, got)
	}
	w.exec(t, got)
	var config string
	if err := w.plain.QueryRow("SELECT rolconfig::text FROM pg_roles WHERE rolname = $1", role).Scan(&config); err != nil || !strings.Contains(config, "idle_in") {
		t.Error(config, err)
	}
}

// If the ledger's function was dropped, Check finds this, and Setup creates the function again.
func TestDroppedLedgerFunctionIsFound(t *testing.T) {
	w := newWorld(t, harness.Bases[1])
	store := harness.NewStore(t, w.plain)
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	says := func() []verify.Finding { return saying(w.verify(t, harness.Books(both...)), "sqlfence_newest_v2") }
	if found := says(); len(found) > 0 {
		t.Errorf("it is there: %v", found)
	}
	w.exec(t, "DROP FUNCTION sqlfence_newest_v2")
	wantOne(t, says(), slog.LevelError, "wrong-ledger")
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := says(); len(found) > 0 {
		t.Errorf("Setup has created it: %v", found)
	}
}
