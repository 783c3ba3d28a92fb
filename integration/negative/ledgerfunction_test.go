package negative_test

import (
	"strings"
	"testing"
)

// Each part of the ledger's function, and of its trigger, is needed.
func TestLedgerFunctionCanFail(t *testing.T) {
	t.Parallel() // it mostly builds
	needed(t)
	for _, c := range []struct {
		name, old, new, packages string
		tests                    map[string][]string
	}{
		{"no comparison", "IF same AND rows > 0 THEN", "IF rows > 0 THEN", "ledger", map[string][]string{
			"TestG2LedgerRefusesAnOlderToken":                  postgres,
			"TestG2LedgerRefusesATokenThatNobodyIssued":        postgres,
			"TestG2LedgerWithKeyRefusesATokenThatNobodyIssued": postgres,
		}},
		{"no look for the name", "RETURN int8in(textout(concat('sqlfence:unknown:', number, ':', rows))) IS NULL;", "RETURN true;", "ledger", map[string][]string{
			"TestG2LedgerRefusesAnUnknownName": postgres,
		}},
		{"no lock against others", "AND pg_advisory_xact_lock_shared(hashtextextended(concat('sqlfence-row:', wanted), 0)) IS NOT NULL THEN", "THEN", "concurrency ledgerfunction", map[string][]string{
			"TestG2LedgerHoldsOffTheNextTokenUntilCommit": postgres,
			"TestFunctionHoldsOffOthers":                  postgres,
		}},
		{"no turn", "concat('sqlfence:', wanted)", "concat(random(), wanted)", "ledgerfunction", map[string][]string{
			"TestIssuerWaitsWithoutARow": postgres,
		}},
		{"no trigger", "PERFORM pg_advisory_xact_lock(hashtextextended(concat('sqlfence-row:', OLD.name), 0)),", "PERFORM", "concurrency ledgerfunction", map[string][]string{
			"TestG2LedgerHoldsOffTheNextTokenUntilCommit": postgres,
			"TestFunctionHoldsOffOthers":                  postgres,
		}},
		{"no trigger of everybody", "g.tgenabled = 'A') THEN\n\t\tEXECUTE", "g.tgenabled <> 'D') THEN\n\t\tEXECUTE", "ledgerfunction", map[string][]string{
			"TestFunctionIsUsedWhereItIsFound": postgres,
		}},
		{"no look for the trigger", "AND g.tgname = 'sqlfence_turn_v1' AND g.tgenabled = 'A')\n\t\tINTO", ")\n\t\tINTO", "ledgerfunction", map[string][]string{
			"TestFunctionHoldsOffOthers": postgres,
		}},
		{"no snapshot of its own", "RETURNS boolean LANGUAGE plpgsql VOLATILE", "RETURNS boolean LANGUAGE plpgsql STABLE", "concurrency", map[string][]string{
			"TestG2LedgerWriteThatWaitsWhileATokenIsIssued": postgres,
		}},
		{"no look at the level", "starts_with(current_setting('transaction_isolation'), 'read ')", "true", "ledger concurrency", map[string][]string{
			"TestG2TokenNewerThanTheSnapshot":               postgres,
			"TestG2LedgerWriteThatWaitsWhileATokenIsIssued": postgres,
		}},
		{"no lock of the row above", "WHERE t.name = wanted FOR SHARE) AS l;", "WHERE t.name = wanted) AS l;", "ledger concurrency", map[string][]string{
			"TestG2TokenNewerThanTheSnapshot":             postgres,
			"TestG2LedgerHoldsOffTheNextTokenUntilCommit": postgres,
		}},
		{"no look at the table", "IF asked = %2$L::regclass", "IF true", "ledgerfunction", map[string][]string{
			"TestFunctionAsksTheLedgerOfTheSearchPath": postgres,
		}},
		{"one lock a token", "IF taken < 256 THEN", "IF true THEN", "ledgerfunction", map[string][]string{
			"TestFunctionWhereManyTokensChange": postgres,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			without := func(source string) string { return strings.ReplaceAll(source, c.old, c.new) }
			if c.name == "no snapshot of its own" { // the question looks at it, too
				without = func(source string) string {
					return strings.ReplaceAll(strings.ReplaceAll(source, c.old, c.new), "p.provolatile = 'v'", "true")
				}
			}
			wantFailing(t, c.packages, asInstalled, replaced(t, "internal/sqltext/ledgerfunction.go", without), c.tests)
		})
	}
}
