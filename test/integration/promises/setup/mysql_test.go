package setup_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// On MySQL an error about a missing object has the SQL that adds the object.
func TestMissingOnMySQL(t *testing.T) {
	dsn := harness.MySQLDatabase(t)
	db := harness.MySQL.Raw(t, dsn)
	user := "u" + strings.ToLower(rand.Text())[:20]
	harness.MustExec(t, db, "CREATE USER "+user+"@'127.0.0.1' IDENTIFIED BY 'secret'")
	defer harness.MustExec(t, db, "DROP USER "+user+"@'127.0.0.1'")
	harness.MustExec(t, db, "CREATE TABLE others (id integer)")
	harness.MustExec(t, db, "GRANT SELECT ON others TO "+user+"@'127.0.0.1'") // or it can't use the database
	poor := harness.MySQL.Raw(t, harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.User, c.Passwd = user, "secret" }))

	missing := func(what string, err error, thing, sql string) {
		t.Helper()
		var setup *sqlfence.SetupError
		if !errors.As(err, &setup) || setup.Missing != thing || !strings.HasPrefix(setup.SQL, sql) {
			t.Errorf("%s: %v, want that %s is missing, and %q", what, err, thing, sql)
		}
	}
	ctx := t.Context()
	store, err := tokens.New(db)
	if err != nil {
		t.Fatal(err)
	}
	leases, err := lease.New(db)
	if err != nil {
		t.Fatal(err)
	}
	m, err := rowlock.NewManager(db)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Issue(ctx, "books")
	missing("Issue", err, "table fencing_tokens", "CREATE TABLE IF NOT EXISTS fencing_tokens (\n\tname  varbinary(512)")
	if err := store.Setup(ctx); err != nil {
		t.Fatal(err)
	}
	_, err = leases.Acquire(ctx, "jobs")
	missing("Acquire", err, "table fencing_leases", "CREATE TABLE IF NOT EXISTS fencing_leases (\n\t`key`")
	_, err = m.Locks(ctx, rowlock.Filter{})
	missing("Locks", err, "table rowlocks", "CREATE TABLE IF NOT EXISTS rowlocks")
	if err := leases.Setup(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Issue(ctx, "books"); err != nil {
		t.Fatal(err)
	}
	if store, err = tokens.New(poor); err != nil {
		t.Fatal(err)
	}
	if leases, err = lease.New(poor); err != nil {
		t.Fatal(err)
	}
	_, err = store.Issue(ctx, "books")
	missing("Issue", err, "privileges on table fencing_tokens", "GRANT SELECT, INSERT, UPDATE ON TABLE fencing_tokens")
	_, err = leases.List(ctx)
	missing("List", err, "privileges on table fencing_leases", "GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE fencing_leases")
}
