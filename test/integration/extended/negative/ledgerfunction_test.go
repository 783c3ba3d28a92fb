package negative_test

import (
	"maps"
	"os"
	"strings"
	"testing"
)

// Each part of the ledger's function and of its trigger is needed. The test programs are built once; they read from the
// environment which part of the SQL to replace.
func TestLedgerFunctionCanFail(t *testing.T) {
	t.Parallel() // mostly builds
	needed(t)
	files, source := withTextsAsVariables(t)
	b := built(t, "ledger concurrency ledgerfunction", files)
	for _, c := range []struct {
		name, old, new, packages string
		tests                    map[string][]string
	}{
		{"no comparison", "IF pg_catalog.int8eq(held, given) THEN", "IF true THEN", "ledger", map[string][]string{
			"TestG2LedgerRefusesAnOlderToken":                  postgres,
			"TestG2LedgerRefusesATokenThatNobodyIssued":        postgres,
			"TestG2LedgerWithKeyRefusesATokenThatNobodyIssued": postgres,
		}},
		{"no look for the name", "RETURN pg_catalog.int8in(pg_catalog.textout(\n\t\t\t\tpg_catalog.concat('sqlfence:', nonce, ':unknown:', number, ':', rows))) IS NULL;", "RETURN true;", "ledger", map[string][]string{
			"TestG2LedgerRefusesAnUnknownName": postgres,
		}},
		{"no lock against others", "AND pg_catalog.pg_advisory_xact_lock_shared(\n\t\t\tpg_catalog.hashtextextended(pg_catalog.concat('sqlfence-row:', wanted), 0)) IS NOT NULL THEN", "THEN", "concurrency ledgerfunction", map[string][]string{
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
		{"no trigger of everybody", "g.tgenabled = 'A') THEN\n\t\t\tEXECUTE", "g.tgenabled <> 'D') THEN\n\t\t\tEXECUTE", "ledgerfunction", map[string][]string{
			"TestFunctionIsRequired": postgres,
		}},
		{"no look for the trigger", " AND %1$I.sqlfence_turns_v1()", "", "ledgerfunction", map[string][]string{
			"TestFunctionHoldsOffOthers":             postgres,
			"TestFunctionIsPlannedByTheTriggerState": postgres,
		}},
		{"no snapshot of its own", "RETURNS boolean LANGUAGE plpgsql VOLATILE", "RETURNS boolean LANGUAGE plpgsql STABLE", "concurrency", map[string][]string{
			"TestG2LedgerWriteThatWaitsWhileATokenIsIssued": postgres,
		}},
		{"no look at the level", "pg_catalog.starts_with(pg_catalog.current_setting('transaction_isolation'), 'read ')", "true", "ledger concurrency", map[string][]string{
			"TestG2TokenNewerThanTheSnapshot":               postgres,
			"TestG2LedgerWriteThatWaitsWhileATokenIsIssued": postgres,
		}},
		{"no lock of the row above", "wanted FOR SHARE) AS l;", "wanted) AS l;", "ledger concurrency", map[string][]string{
			"TestG2TokenNewerThanTheSnapshot":             postgres,
			"TestG2LedgerHoldsOffTheNextTokenUntilCommit": postgres,
		}},
		{"no look at the table", "IF asked OPERATOR(pg_catalog.=) %2$L::pg_catalog.regclass", "IF true", "ledgerfunction", map[string][]string{
			"TestFunctionAsksTheLedgerOfTheSearchPath": postgres,
		}},
		{"no look at the body", "'hex') = '", "'hex') <> 'x", "ledgerfunction", map[string][]string{
			"TestLedgerFunctionThatDiffers": postgres,
			"TestLedgerFunctionOfAnySchema": postgres,
		}},
		{"one lock a token", "IF taken < 256 THEN", "IF true THEN", "ledgerfunction", map[string][]string{
			"TestFunctionWhereManyTokensChange": postgres,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			olds, news := []string{c.old}, []string{c.new}
			if c.name == "no snapshot of its own" { // the query that finds the function also tests provolatile
				olds, news = append(olds, "provolatile = '{volatility}'"), append(news, "provolatile IS NOT NULL")
			}
			for _, old := range olds {
				if !strings.Contains(source, old) {
					t.Fatalf("there is no %q to take out", old)
				}
			}
			// That query has the function's volatility in the place of the word, and operators with their schema.
			found := strings.NewReplacer("{volatility}", "v", " = '", " OPERATOR(pg_catalog.=) '")
			for i, old := range olds {
				if named := found.Replace(old); named != old {
					olds, news = append(olds, named), append(news, news[i])
				}
			}
			b.of(c.packages).wantFailing(t, c.tests, "SQLFENCE_OLD="+strings.Join(olds, "\x1f"), "SQLFENCE_NEW="+strings.Join(news, "\x1f"))
		})
	}
}

// withTextsAsVariables returns an overlay in which the program replaces parts of the function's SQL when it starts, and
// the SQL itself.
func withTextsAsVariables(t *testing.T) (files map[string]string, source string) {
	t.Helper()
	shipped, err := os.ReadFile("../../../../schema/postgres/00004_ledger_function.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	source = string(shipped)
	files = replaced(t, "internal/sqltext/ledgertriggers.go", func(text string) string {
		wrapped := strings.Replace(text, "append(statements, statement)", "append(statements, Without(statement))", 1)
		return strings.Replace(wrapped, "import (\n", "import (\n\"os\"\n", 1) + `
func Without(text string) string {
	news := strings.Split(os.Getenv("SQLFENCE_NEW"), "\x1f")
	for i, old := range strings.Split(os.Getenv("SQLFENCE_OLD"), "\x1f") {
		text = strings.ReplaceAll(text, old, news[i])
	}
	return text
}
`
	})
	maps.Copy(files, replaced(t, "internal/dialect/postgres/ledger.go", func(text string) string {
		source += text
		before, value, _ := strings.Cut(text, "\nvar FindLedgerFunction = ")
		value, rest, _ := strings.Cut(value, "\n\n")
		return before + "\nvar FindLedgerFunction = sqltext.Without(" + strings.TrimSuffix(value, "\n") + ")" + "\n\n" + rest
	}))
	return files, source
}
