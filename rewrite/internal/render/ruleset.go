package render

// The rules, in the order of precedence.
const (
	RuleLedger = iota
	RuleKey
	RuleRowFence
	RuleClaim
	RuleTakeover
	RuleSerial
	RuleEditLock
	RuleSealed
	ruleCount
)

// RuleSet is a set of rules.
type RuleSet uint8

// AllRules are all of them.
const AllRules RuleSet = 1<<ruleCount - 1

// SetOf returns the set of some rules.
func SetOf(rules ...int) (s RuleSet) {
	for _, r := range rules {
		s |= 1 << r
	}
	return s
}

// Has reports whether a rule is in the set.
func (s RuleSet) Has(r int) bool { return s>>r&1 != 0 }
