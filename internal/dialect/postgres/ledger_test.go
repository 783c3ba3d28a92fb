package postgres

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// The function, the statements and the trigger take the same locks.
func TestLedgerFunctionTakesTheTurn(t *testing.T) {
	bare := strings.NewReplacer("pg_catalog.", "", " ", "", "\n", "", "\t", "").Replace
	text := bare(CreateLedgerFunction)
	for _, part := range []string{Text.AdvisoryLock("wanted", true), sqltext.LedgerFunction, sqltext.LedgerTrigger, sqltext.LedgerTable} {
		if !strings.Contains(text, bare(part)) {
			t.Errorf("the function's text has no %s", part)
		}
	}
	if n := strings.Count(text, "hashtextextended(concat('sqlfence-row:',"); n != 2 {
		t.Errorf("%d locks of writers and others, want one each", n)
	}
}

// The function runs under the caller's search_path, so its body must qualify each name with pg_catalog.
func TestLedgerFunctionNamesTheCatalogue(t *testing.T) {
	body := strings.ReplaceAll(ledgerBody(sqltext.LedgerFunction), "OPERATOR(pg_catalog.=)", "")
	if !strings.Contains(body, "FOR SHARE") {
		t.Fatalf("the function's body is %q", body)
	}
	body = strings.Replace(body, "%1$I."+sqltext.LedgerTurns+"()", "", 1)
	for _, call := range regexp.MustCompile(`[\w.]+\(`).FindAllString(body, -1) {
		if call != "COALESCE(" && !strings.HasPrefix(call, "pg_catalog.") {
			t.Errorf("it calls %s…)", call)
		}
	}
	if found := regexp.MustCompile(`[=<>|+/]|::[^p]|FROM [^(%pO]`).FindString(body); found != "" {
		t.Errorf("it has %q", found)
	}
}
