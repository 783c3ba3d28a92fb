package negative_test

import (
	"maps"
	"strings"
	"testing"
)

func TestGuaranteesCanFail(t *testing.T) {
	t.Parallel() // mostly builds
	needed(t)

	t.Run("no guard", func(t *testing.T) {
		passes := func(source string) string {
			return strings.Replace(source, "\thash := plans", "\tif true {\n\t\treturn render.Pass\n\t}\n\thash := plans", 1)
		}
		wantFailing(t, "guarantees ledger concurrency", replaced(t, "rewrite/rewriter.go", passes), map[string][]string{
			"TestG1RowFenceRefusesAnOlderToken":                   all,
			"TestG1RowFenceWriteThatWaitsWhileANewerOneIsWritten": servers,
			"TestG1RowFenceUnderLoad":                             all,
			"TestG1SingleUseRefusesAnEqualToken":                  all,
			"TestG2LedgerRefusesAnOlderToken":                     all,
			"TestG2LedgerRefusesAnUnknownName":                    all,
			"TestG2LedgerWriteThatWaitsWhileATokenIsIssued":       servers,
			"TestG2LedgerHoldsOffTheNextTokenUntilCommit":         postgres, // SQLite's file lock has the same effect
			"TestG2LedgerUnderLoad":                               all,
			"TestG3AllOrNothing":                                  all,
			"TestG4FailClosed":                                    all,
			"TestG5NoTokenNoWrite":                                all,
			"TestThousandClientsRowFence":                         all,
			"TestThousandClientsLedger":                           all,
		})
	})

	// The ledger's early check only improves the error message. Without it a stale holder gets another error.
	t.Run("no first question to the ledger", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, "return p.target.rules.Ledger && !p.Dialect.LedgerInWhere()", "return false && !p.Dialect.LedgerInWhere()", 1)
		}
		wantFailing(t, "guarantees", replaced(t, "rewrite/internal/rules/checkfirst.go", without), map[string][]string{
			"TestG12StaleFirst": postgres,
		})
	})

	t.Run("no lock on MySQL's ledger", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, " LOCK IN SHARE MODE) AS newest)", ") AS newest)", 1)
		}
		wantFailing(t, "concurrency", replaced(t, "internal/dialect/mysql/guard.go", without), map[string][]string{
			"TestG2LedgerUnderLoad":                         mysql,
			"TestG2LedgerWriteThatWaitsWhileATokenIsIssued": mysql,
		})
	})

	t.Run("no lock on the claims of another table", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, `" FOR SHARE OF " + guard.ClaimedTable + ") AS held)"`, `") AS held)"`, 1)
		}
		wantFailing(t, "claims", replaced(t, "internal/dialect/postgres/guard.go", without), map[string][]string{
			"TestClaimOfJobThatIsTakenOverWhileItsResultIsWritten": postgres,
			"TestTakeoverWaitsForTheWriteThatPresentedTheClaim":    postgres,
			"TestCaseStudies": postgres,
		})
	})

	t.Run("no upper limit at the ledger", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, "w.Compare(guard.Equal, ", "w.Compare(guard.LessOrEqual, ", 1)
		}
		files := replaced(t, "internal/dialect/sqlite/guard.go", without)
		maps.Copy(files, replaced(t, "internal/dialect/mysql/guard.go", without))
		wantFailing(t, "ledger", files, map[string][]string{
			"TestG2LedgerRefusesATokenThatNobodyIssued":                   all[1:],
			"TestG2LedgerRefusesATokenThatNobodyIssuedInEveryKindOfWrite": all[1:],
			"TestG2LedgerOfANameWithoutATokenRefusesAll":                  all[1:],
			"TestG2LedgerWithKeyRefusesATokenThatNobodyIssued":            all[1:],
			"TestRetryNeverRepeatsATokenThatNobodyIssued":                 all[1:],
		})
	})

	t.Run("raised by a cast", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, `"pg_catalog.int8in(pg_catalog.textout(pg_catalog.concat(", ", ", ")))"`, `"(pg_catalog.concat(", ", ", ")::bigint)"`, 1)
		}
		wantFailing(t, "ledger", replaced(t, "internal/dialect/postgres/text.go", without), map[string][]string{
			"TestGuardsRaiseWhateverCastsTheDatabaseHas": postgres,
		})
	})

	t.Run("own tables not registered", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, "var OwnTables = sqltext.OwnTables", "var _ = sqltext.OwnTables\n\nvar OwnTables = []string{\"no_table\"}", 1)
		}
		wantFailing(t, "guarantees", replaced(t, "rewrite/internal/render/table.go", without), map[string][]string{
			"TestG8OwnTablesAreNotWritten":      all,
			"TestG8OwnTablesCanNotBeRegistered": all,
		})
	})
}
