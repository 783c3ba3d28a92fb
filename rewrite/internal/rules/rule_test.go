package rules

import (
	"reflect"
	"testing"

	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// The rules are in the order of precedence, and each is asked by its name there.
func TestPrecedence(t *testing.T) {
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
