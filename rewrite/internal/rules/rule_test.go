package rules

import (
	"reflect"
	"testing"

	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// The rules are in order of precedence, and each constant of package render is its rule's index.
func TestPrecedenceOfRulesMatchesTheirConstants(t *testing.T) {
	want := []rule{ledger{}, key{}, rowFence{}, claim{}, takeover{}, serial{}, editLock{}, sealed{}}
	if !reflect.DeepEqual(precedence[:], want) {
		t.Errorf("got %T", precedence)
	}
	for i, r := range map[int]rule{render.RuleLedger: ledger{}, render.RuleKey: key{}, render.RuleRowFence: rowFence{}, render.RuleClaim: claim{}, render.RuleTakeover: takeover{}, render.RuleSerial: serial{}, render.RuleEditLock: editLock{}, render.RuleSealed: sealed{}} {
		if precedence[i] != r {
			t.Errorf("rule %d is %T", i, precedence[i])
		}
	}
}
