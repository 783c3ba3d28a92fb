package negative_test

import (
	"os"
	"strings"
	"testing"
)

func TestGuaranteesCanFail(t *testing.T) {
	t.Parallel() // it mostly builds
	needed(t)

	t.Run("no guard", func(t *testing.T) {
		passThrough, err := os.ReadFile("testdata/passthrough_lookup.go.txt")
		if err != nil {
			t.Fatal(err)
		}
		wantFailing(t, "guarantees ledger concurrency", replaced(t, "rewrite/lookup.go", func(string) string { return string(passThrough) }), map[string][]string{
			"TestG1RowFenceRefusesAnOlderToken":                   all,
			"TestG1RowFenceWriteThatWaitsWhileANewerOneIsWritten": postgres,
			"TestG1RowFenceUnderLoad":                             all,
			"TestG1SingleUseRefusesAnEqualToken":                  all,
			"TestG2LedgerRefusesAnOlderToken":                     all,
			"TestG2LedgerRefusesAnUnknownName":                    all,
			"TestG2LedgerWriteThatWaitsWhileATokenIsIssued":       postgres,
			"TestG2LedgerHoldsOffTheNextTokenUntilCommit":         postgres, // SQLite's own lock does it, too
			"TestG2LedgerUnderLoad":                               all,
			"TestG3AllOrNothing":                                  all,
			"TestG4FailClosed":                                    all,
			"TestG5NoTokenNoWrite":                                all,
			"TestThousandClientsRowFence":                         all,
			"TestThousandClientsLedger":                           all,
		})
	})

	// A plain subquery on the ledger looks right and passes without concurrency.
	t.Run("no lock on the ledger", func(t *testing.T) {
		without := func(source string) string { return strings.Replace(source, " FOR SHARE OF fencing_tokens", "", 1) }
		wantFailing(t, "concurrency", replaced(t, "rewrite/guard.go", without), map[string][]string{
			"TestG2LedgerWriteThatWaitsWhileATokenIsIssued": postgres,
			"TestG2LedgerHoldsOffTheNextTokenUntilCommit":   postgres,
			"TestG2LedgerUnderLoad":                         postgres,
		})
	})

	t.Run("no upper limit at the ledger", func(t *testing.T) {
		without := func(source string) string {
			source = strings.Replace(source, `w.compare("=", "int8eq"`, `w.compare("<=", "int8le"`, 1)
			return strings.Replace(source, `w.compare("=", ""`, `w.compare("<=", ""`, 1)
		}
		wantFailing(t, "ledger", replaced(t, "rewrite/guard.go", without), map[string][]string{
			"TestG2LedgerRefusesATokenThatNobodyIssued":                   all,
			"TestG2LedgerRefusesATokenThatNobodyIssuedInEveryKindOfWrite": all,
			"TestG2LedgerOfANameWithoutATokenRefusesAll":                  all,
			"TestG2LedgerWithKeyRefusesATokenThatNobodyIssued":            all,
			"TestRetryNeverRepeatsATokenThatNobodyIssued":                 all,
		})
	})

	t.Run("raised by a cast", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, `"pg_catalog.int8in(pg_catalog.textout(pg_catalog.concat(", ")))"`, `"(pg_catalog.concat(", ")::bigint)"`, 1)
		}
		wantFailing(t, "ledger", replaced(t, "rewrite/guard.go", without), map[string][]string{
			"TestGuardsRaiseWhateverCastsTheDatabaseHas": postgres,
		})
	})

	t.Run("own tables not registered", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, `"fencing_tokens", "fencing_leases", "rowlocks"`, `"no_tokens", "no_leases", "no_locks"`, 1)
		}
		wantFailing(t, "guarantees", replaced(t, "rewrite/own.go", without), map[string][]string{
			"TestG8OwnTablesAreNotWritten":      all,
			"TestG8OwnTablesCanNotBeRegistered": all,
		})
	})

	t.Run("no turn at the ledger", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, "pg_advisory_xact_lock_shared(", "abs(", 1)
		}
		wantFailing(t, "concurrency", replaced(t, "rewrite/guard.go", without), map[string][]string{
			"TestG2LedgerIssueGetsItsTurn": postgres,
		})
	})
}
