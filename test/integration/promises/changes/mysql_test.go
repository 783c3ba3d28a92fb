package changes_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/changes"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A cascade of InnoDB fires no trigger, so a table with a cascade isn't counted.
func TestMySQLRefusesCascades(t *testing.T) {
	db := harness.MySQL.Raw(t, harness.MySQLDatabase(t))
	exec(t, db, "CREATE TABLE shops (id int PRIMARY KEY)")
	exec(t, db, "CREATE TABLE books (id int PRIMARY KEY, shop int, FOREIGN KEY (shop) REFERENCES shops (id) ON DELETE CASCADE)")
	exec(t, db, "CREATE TABLE notes (id int PRIMARY KEY) ENGINE=MyISAM")
	counter, err := changes.New(db)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"books", "notes"} {
		if err := counter.Setup(t.Context(), table); err == nil || !strings.Contains(err.Error(), "can't be counted") {
			t.Errorf("%s: err = %v, want that it can't be counted", table, err)
		}
	}
	counting(t, db, "shops")
}

// A READ UNCOMMITTED session doesn't count uncommitted changes.
func TestMySQLReadsWhatIsCommitted(t *testing.T) {
	dsn := harness.MySQLDatabase(t)
	db := harness.MySQL.Raw(t, harness.MySQL.AtLevel(t, dsn, sql.LevelReadUncommitted))
	counter := setup(t, db)
	tx := begin(t, db, 0)
	wantSame(t, counter, "an open transaction", func() { exec(t, tx, "UPDATE books SET price = 11 WHERE id = 1") })
	wantRaised(t, counter, "its end", func() { commit(t, tx) })
}

// The triggers that Setup creates work for every writer, whatever the modes and the database of Setup's session are.
func TestMySQLSessions(t *testing.T) {
	harness.EachMySQLSession(t, func(t *testing.T, db, plain *sql.DB) {
		counter := setup(t, db)
		for _, writer := range []*sql.DB{db, plain} {
			wantRaised(t, counter, "a write", func() { exec(t, writer, "UPDATE books SET price = price + 1 WHERE id = 1") })
		}
		var home string
		if err := plain.QueryRow("SELECT DATABASE()").Scan(&home); err != nil {
			t.Fatal(err)
		}
		before := count(t, counter, "books")
		exec(t, plain, "DELETE FROM `"+home+"`.books WHERE id = 1")
		elsewhere, err := changes.New(harness.MySQL.Raw(t, harness.MySQLDatabase(t)))
		if err != nil {
			t.Fatal(err)
		}
		if after := count(t, elsewhere, "`"+home+"`.books"); after <= before {
			t.Errorf("from another database the count is %d, and was %d", after, before)
		}
	})
}
