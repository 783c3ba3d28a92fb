package verify_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// elsewhere are the codes that other tests than TestFindings provoke.
var elsewhere = []string{"several-servers", "unproven-server", "untested-server", "several-ledgers", "tokens-run-out", "missing-privilege", "attached-twice", "other-writers", "not-sealed", "sealed-unregistered", "seal-broken", "seal-shape",
	"seal-privileges", "seal-trigger", "foreign-table", "subscription", "replication-role", "sql-mode", "binlog-format", "durability",
	"idle-in-transaction", "unseen"}

// docs/verify.md has every code, and no other.
func TestPageHasTheCodes(t *testing.T) {
	page, err := os.ReadFile("../../docs/verify.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		told = append(told, match[1])
	}
	codes := slices.Clone(elsewhere)
	for _, p := range provocations {
		codes = append(codes, p.code)
	}
	slices.Sort(codes)
	slices.Sort(told)
	if codes = slices.Compact(codes); !slices.Equal(told, codes) {
		t.Errorf("the page has\n%q\nand the tests\n%q", told, codes)
	}
}
