// Package verified has the tests of the examples look at the databases that these make.
package verified

import (
	"database/sql"
	"log/slog"
	"testing"

	"github.com/sqlfence/sqlfence/verify"
)

// Nothing wants verify.Check to find nothing that has to be repaired in a database, which is fenced.
func Nothing(t testing.TB, db *sql.DB) {
	t.Helper()
	found, err := verify.Check(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		// The examples are tested at once, on one server, in a schema each.
		if f.Level > slog.LevelInfo && f.Code != "several-ledgers" {
			t.Error(f)
		}
	}
}
