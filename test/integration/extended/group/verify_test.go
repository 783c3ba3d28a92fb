package group_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/verify"
)

// verify.Check reports a ledger on a group of nodes that all accept writes, where a write under Ledger is refused.
// verify.Check also reports a Galera node without a binary log.
func TestVerifyReportsSeveralWritingNodes(t *testing.T) {
	c := start(t)
	for node := range c.dsn {
		for ledger, rules := range map[bool][]sqlfence.Rule{
			true:  {sqlfence.RowFence("fence_token"), sqlfence.Ledger()},
			false: {sqlfence.RowFence("fence_token")},
		} {
			found, err := verify.Check(t.Context(), c.fence(t, node, rules...))
			if err != nil {
				t.Fatal(err)
			}
			isTold := func(f verify.Finding) bool {
				return f.Code == "wrong-server" && f.Level == slog.LevelError && f.Table == "books"
			}
			if slices.ContainsFunc(found, isTold) != ledger {
				t.Errorf("node %d, ledger %v: found %v", node, ledger, found)
			}
			leaks := func(f verify.Finding) bool { return f.Code == "setting" && strings.Contains(f.Problem, "log_bin") }
			if slices.ContainsFunc(found, leaks) != c.leaks(t) {
				t.Errorf("node %d: found %v", node, found)
			}
		}
	}
}
