package rewrite

import (
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
)

// All faults of all tables are returned at once.
func TestNewReturnsAllFaults(t *testing.T) {
	_, err := New(databases.SQLite, []Table{
		{Name: "books", FenceColumn: "x", Key: "x", Serial: "x"},
		{},
		{Name: "books", Schema: "shop", Ledger: true},
		{Name: "pens"},
		{Name: "fencing_tokens", Ledger: true},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`table "books": the column "x" can't be both fence and key`,
		`table "books": the column "x" can't be both the serial and the fence or key`,
		`a table has no name`,
		`table "books" is registered twice`,
		`table "pens" has neither a fence column nor a ledger`,
		`table "fencing_tokens" belongs to sqlfence's packages`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 6 {
		t.Errorf("%d faults, want 6: %v", n, err)
	}
}
