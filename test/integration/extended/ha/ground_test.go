//go:build linux

package ha_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A table that the clients write to. Its tokens have the table's name, or "table/row" if each row has its own tokens.
type table struct {
	name    string
	rules   []sqlfence.Rule // none for the control table, which clients write to without sqlfence
	ledger  bool            // writes are compared with the ledger
	perRow  bool
	byLease bool // tokens come from leases
}

var tables = []table{
	{name: "marks", rules: []sqlfence.Rule{sqlfence.RowFence("fence_token")}},
	{name: "turns", rules: []sqlfence.Rule{sqlfence.Ledger()}, ledger: true},
	{name: "lots", rules: []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Key("id")},
		ledger: true, perRow: true},
	{name: "jobs", rules: []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger()}, ledger: true, byLease: true},
	{name: "plain"},
}

// rows is the number of rows of each table.
const rows = 3

// token returns the name of a row's tokens.
func (t *table) token(row int) string {
	if t.perRow {
		return fmt.Sprint(t.name, "/", row)
	}
	return t.name
}

// A trigger inserts a row into journal in the transaction of each write. The row holds the write's number, the version
// of the table's row that the write has made, the write's token, and the ledger's newest token at that moment.
const journal = `CREATE TABLE journal (write text PRIMARY KEY, book text NOT NULL, id int NOT NULL, version bigint NOT NULL,
	token bigint NOT NULL, newest bigint NOT NULL, UNIQUE (book, id, version));
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO journal SELECT NEW.write, TG_TABLE_NAME, NEW.id, NEW.version, NEW.token,
		(SELECT token FROM fencing_tokens WHERE name = TG_TABLE_NAME || CASE WHEN TG_TABLE_NAME = 'lots' THEN '/' || NEW.id ELSE '' END);
	RETURN NULL;
END $$;`

// prepare creates the tables, the journal, the ledger and the leases.
func prepare(t *testing.T, c *cluster) {
	t.Helper()
	db := open(t, "pgx", c.dsn(0))
	harness.NewLeases(t, db) // also sets up the ledger
	harness.MustExec(t, db, journal)
	for _, table := range tables {
		harness.MustExec(t, db, fmt.Sprintf(`CREATE TABLE %[1]s (id int PRIMARY KEY, token bigint NOT NULL DEFAULT 0,
			write text, version bigint NOT NULL DEFAULT 0, fence_token bigint NOT NULL DEFAULT 0);
			CREATE TRIGGER note AFTER UPDATE ON %[1]s FOR EACH ROW EXECUTE FUNCTION note();
			INSERT INTO %[1]s (id) SELECT generate_series(1, %[2]d)`, table.name, rows))
	}
}

func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	return harness.CloseAtEnd(t, db, err)
}
