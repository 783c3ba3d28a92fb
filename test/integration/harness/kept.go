package harness

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	every "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// IsKept reports whether an error is the refusal of a trigger that keeps the ledger's tokens and names.
func IsKept(err error) bool {
	return err != nil && (SQLState(err) == sqltext.LedgerRefusal || strings.Contains(err.Error(), sqltext.LedgerRefusalState) ||
		strings.Contains(err.Error(), "sqlfence: tokens in fencing_tokens never fall") || strings.Contains(err.Error(), "sqlfence: fencing_tokens keeps its names"))
}

// Unkept executes a statement while the ledger's triggers are off: a test makes as if tokens had been lost.
func Unkept(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	ctx := sqlfence.Bypass(t.Context(), "a test loses tokens")
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// Each database knows its own of these.
	may := func(query string) { _, _ = conn.ExecContext(ctx, query) }
	for _, name := range []string{sqltext.LedgerTrigger, sqltext.LedgerTruncateTrigger, sqltext.LedgerBoundTrigger} {
		may("ALTER TABLE fencing_tokens DISABLE TRIGGER " + name)
		defer may("ALTER TABLE fencing_tokens ENABLE ALWAYS TRIGGER " + name)
	}
	for _, d := range every.All() {
		for _, t := range d.Text.Capabilities().LedgerTriggers {
			may("DROP TRIGGER IF EXISTS " + t.Name)
			defer may(t.Create)
		}
	}
	may("DELETE FROM " + sqltext.SQLiteLedgerState)
	if _, err := conn.ExecContext(ctx, query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
