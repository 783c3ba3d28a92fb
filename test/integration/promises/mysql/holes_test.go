package mysql_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

const (
	goodLeases = "CREATE TABLE fencing_leases (`key` varbinary(512) NOT NULL PRIMARY KEY, lock_id varbinary(22) UNIQUE, holder varbinary(512) NOT NULL," +
		" session bigint, token bigint NOT NULL, acquired_at bigint NOT NULL, expires_at bigint NOT NULL) ENGINE=InnoDB"
	goodRowlocks = "CREATE TABLE rowlocks (table_name varbinary(520) NOT NULL, row_key varbinary(2500) NOT NULL, user_id varbinary(2500) NOT NULL," +
		" session varbinary(2500) NOT NULL, since bigint NOT NULL, expiry bigint NOT NULL, heartbeat bigint NOT NULL, PRIMARY KEY (table_name, row_key)) ENGINE=InnoDB"
)

// A table that another client has created may have an engine without transactions, a collation under which two names
// are equal, or columns that truncate values without an error under an empty sql_mode. Setup must refuse each.
func TestSetupRefusesWrongTables(t *testing.T) {
	dsn := harness.MySQLDatabase(t)
	db := open(t, modes[2].with(t, dsn))
	try := func(create, from, to string, wanted bool, setup func() error) {
		t.Helper()
		changed := strings.Replace(create, from, to, 1)
		if changed == create && from != to {
			t.Fatalf("%q isn't in %s", from, create)
		}
		exec(t, db, changed)
		defer exec(t, db, "DROP TABLE "+strings.Fields(create)[2])
		if err := setup(); (err == nil) != wanted {
			t.Errorf("%q for %q: %v", to, from, err)
		} else if err != nil {
			t.Log(err)
		}
	}
	leases := func() error {
		m, err := lease.New(db)
		if err != nil {
			t.Fatal(err)
		}
		return m.Setup(t.Context())
	}
	rowlocks := func() error {
		m, err := rowlock.NewManager(db)
		if err != nil {
			t.Fatal(err)
		}
		return m.Setup(t.Context())
	}
	try(goodLeases, "", "", true, leases)
	try(goodLeases, "InnoDB", "MyISAM", false, leases)
	try(goodLeases, "varbinary(512)", "varchar(190) COLLATE utf8mb4_general_ci", false, leases)
	try(goodLeases, "varbinary(512)", "varbinary(100)", false, leases)
	try(goodLeases, " PRIMARY KEY", "", false, leases)
	try(goodLeases, "varbinary(22)", "varchar(22) COLLATE utf8mb4_general_ci", false, leases)
	try(goodLeases, "varbinary(22)", "varbinary(10)", false, leases)
	try(goodLeases, " UNIQUE", "", false, leases)
	try(goodLeases, "holder varbinary(512)", "holder varchar(512) COLLATE utf8mb4_general_ci", false, leases)
	try(goodLeases, "holder varbinary(512)", "holder varbinary(20)", false, leases)
	try(goodLeases, "session bigint", "session int", false, leases)
	try(goodLeases, "token bigint", "token int", false, leases)
	try(goodLeases, "acquired_at bigint", "acquired_at double", false, leases)
	try(goodLeases, "expires_at bigint", "expires_at int", false, leases)
	try(goodRowlocks, "", "", true, rowlocks)
	try(strings.ReplaceAll(goodRowlocks, "varbinary(2500)", "varbinary(400)"), "InnoDB", "MyISAM", false, rowlocks)
	try(goodRowlocks, "table_name varbinary(520)", "table_name varchar(100) COLLATE utf8mb4_general_ci", false, rowlocks)
	try(goodRowlocks, "user_id varbinary(2500)", "user_id varchar(250) COLLATE utf8mb4_general_ci", false, rowlocks)
	try(goodRowlocks, "row_key varbinary(2500)", "row_key varbinary(20)", false, rowlocks)
	try(goodRowlocks, "PRIMARY KEY (", "KEY (", false, rowlocks)
	try(goodRowlocks, "expiry bigint", "expiry int", false, rowlocks)
}

// A session at READ UNCOMMITTED reads a token whose transaction is then rolled back, and the token is issued to another
// caller.
func TestCurrentIsCommitted(t *testing.T) {
	dsn := setup(t)
	raw := open(t, dsn)
	dirty := open(t, dsn)
	dirty.SetMaxOpenConns(1)
	exec(t, dirty, "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
	store, err := tokens.New(dirty)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Issue(t.Context(), "books"); err != nil {
		t.Fatal(err)
	}
	tx := harness.Begin(context.Background(), t, raw, sql.LevelDefault)
	exec(t, tx, "UPDATE fencing_tokens SET token = 2 WHERE name = 'books'")
	token, err := store.Current(t.Context(), "books")
	if err != nil || token.Value != 1 {
		t.Errorf("%v, %v, want 1: 2 was never committed", token, err)
	}
}

// After a COMMIT a session with completion_type = CHAIN is in a transaction again.
func TestTokensAreCommittedInAChain(t *testing.T) {
	dsn := setup(t)
	raw := open(t, dsn)
	chain := open(t, harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.Params = map[string]string{"completion_type": "1"} }))
	chain.SetMaxOpenConns(1)
	store, err := tokens.New(chain)
	if err != nil {
		t.Fatal(err)
	}
	other, err := tokens.New(raw)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		token, err := store.Issue(t.Context(), "books")
		if err != nil {
			t.Fatal(err)
		}
		current, err := other.Current(t.Context(), "books")
		if err != nil || current != token {
			t.Fatalf("issued %v, in the ledger is %v (%v)", token, current, err)
		}
	}
}
