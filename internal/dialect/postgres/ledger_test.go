package postgres

import (
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// The function, the statements and the trigger take the same locks.
func TestLedgerFunctionTakesTheTurn(t *testing.T) {
	text := strings.ReplaceAll(CreateLedgerFunction, " ", "")
	for _, part := range []string{Text.Turn("wanted", true), sqltext.LedgerFunction, sqltext.LedgerTrigger, sqltext.LedgerTable} {
		if !strings.Contains(text, strings.ReplaceAll(strings.ReplaceAll(part, "pg_catalog.", ""), " ", "")) {
			t.Errorf("the function's text has no %s", part)
		}
	}
	if n := strings.Count(CreateLedgerFunction, "hashtextextended(concat('sqlfence-row:', "); n != 2 {
		t.Errorf("%d locks of writers and others, want one each", n)
	}
}
