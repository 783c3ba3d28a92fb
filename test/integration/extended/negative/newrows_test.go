package negative_test

import (
	"strings"
	"testing"
)

func TestNewRowsCanFail(t *testing.T) {
	t.Parallel() // mostly builds
	needed(t)

	for _, c := range []struct {
		name, file, old, new string
		tests                map[string][]string
	}{
		{"upserts count as new rows", "rewrite/internal/rules/target.go", "&& !updates", "&& (!updates || true)",
			map[string][]string{"TestNewRowsOnly": all}},
		{"no OR ABORT", "rewrite/internal/rules/target.go", "|| p.target.rules.UnfencedInserts", "",
			map[string][]string{"TestNewRowsReplaceNone": sqlite}},
		{"rows move to hidden keys", "rewrite/internal/rules/key.go", "|| !(inserting{p}).showedKeys() ", "",
			map[string][]string{"TestNewRowsMoveNone": all}},
		{"rows move to other tables' keys", "rewrite/internal/rules/key.go", "p.Dialect.Quote(of) == p.target.qualifier && of", "of",
			map[string][]string{"TestKeyIsNotAssignedFromAnotherTable": unlike}},
		{"rows move to keys spelled like the column", "rewrite/internal/rules/key.go", "&& p.isColumn(value.Lo, a)", "",
			map[string][]string{"TestKeyCannotBeMoved": sqlite}},
		// MySQL's guard also checks the key after the assignment, so the test passes on MySQL.
		{"rows move to new keys", "internal/core/key.go", "UnfencedInserts && !target.AssignsKey", "UnfencedInserts",
			map[string][]string{"TestNewRowsMoveNone": unlike}},
	} {
		t.Run(c.name, func(t *testing.T) {
			without := func(source string) string { return strings.Replace(source, c.old, c.new, 1) }
			wantFailing(t, "keys", replaced(t, c.file, without), c.tests)
		})
	}
}

func TestReplaceCanFail(t *testing.T) {
	t.Parallel() // mostly builds
	needed(t)

	for _, c := range []struct {
		name, file, old, new string
		tests                map[string][]string
	}{
		{"beside other rules", "rewrite/internal/rules/target.go", "p.target.rules.Ledger && len(p.target.rules.Owned) == 0", "true",
			map[string][]string{"TestG4ReplaceBesideOtherRules": sqlite, "TestG4FailClosed": sqlite}},
		{"no look at the ledger", "rewrite/internal/rules/insert.go", "if asks && !p.Dialect.Guard.LedgerInRow.Is() {", "if w.Verb != read.Replace && w.Or != read.OrReplace && asks && !p.Dialect.Guard.LedgerInRow.Is() {",
			map[string][]string{"TestG2Replace": sqlite}},
	} {
		t.Run(c.name, func(t *testing.T) {
			without := func(source string) string { return strings.Replace(source, c.old, c.new, 1) }
			wantFailing(t, "guarantees", replaced(t, c.file, without), c.tests)
		})
	}
}

func TestReplacedRowsCanFail(t *testing.T) {
	t.Parallel() // mostly builds
	needed(t)

	for _, c := range []struct {
		name, file, old, new string
		tests                map[string][]string
	}{
		{"no look at the rows", "rewrite/internal/render/replacement.go", "w.check(AllRules &^ SetOf(RuleLedger))", "w.bool(true)",
			map[string][]string{"TestReplaceIsStale": sqlite, "TestReplaceOfPrograms": sqlite}},
		{"no look at the shape", "rewrite/internal/render/replacement.go", "w.b.Text(keys.Shape)", `w.b.Text(keys.Shape); w.write(" OR 1")`,
			map[string][]string{"TestReplaceFindsNewIndexes": sqlite, "TestReplaceOfATemporaryTable": sqlite}},
		{"odd keys", "rewrite/internal/render/replacement.go", `keys.Unusable != ""`, "false", map[string][]string{"TestReplaceIsRefused": sqlite}},
	} {
		t.Run(c.name, func(t *testing.T) {
			without := func(source string) string { return strings.Replace(source, c.old, c.new, 1) }
			wantFailing(t, "replace", replaced(t, c.file, without), c.tests)
		})
	}
}

func TestStoredKeysCanFail(t *testing.T) {
	t.Parallel() // mostly builds
	needed(t)

	for _, c := range []struct{ name, file, old, new string }{
		{"no look at what is stored", "rewrite/internal/render/key.go", `w.write(" RETURNING ")`, "return"},
		{"several tokens", "internal/core/key.go", "case len(tokens) > 1:\n\t\treturn t.unguardable(nil, \"the rows'", "case false:\n\t\treturn t.unguardable(nil, \"the rows'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			without := func(source string) string { return strings.Replace(source, c.old, c.new, 1) }
			wantFailing(t, "keys", replaced(t, c.file, without), map[string][]string{"TestKeyThatIsStoredIsOutOfScope": postgres})
		})
	}
}
