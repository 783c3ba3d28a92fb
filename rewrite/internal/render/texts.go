package render

// A ruleText writes the checks and assignments of a rule, for the table and the target that the writer has chosen.
type ruleText interface {
	// refuses reports whether check may refuse a row of a table with the rule in this rendering.
	refuses(w *writer) bool

	// check writes a condition that is true for a row that may be written, and throws an error for any other row. The
	// condition is never NULL. If the database throws no error for the expression, the condition is false, so that the
	// row isn't written.
	check(w *writer)

	// assigns writes the rule's assignments in an UPDATE, with a comma before each assignment.
	assigns(w *writer)
}

var texts = [ruleCount]ruleText{
	RuleLedger:   ledger{},
	RuleKey:      key{},
	RuleRowFence: rowFence{},
	RuleClaim:    claim{},
	RuleTakeover: takeover{},
	RuleSerial:   serial{},
	RuleEditLock: editLock{},
	RuleSealed:   sealed{},
}

// assignsNothing is embedded in the ruleText of a rule that assigns nothing.
type assignsNothing struct{}

func (assignsNothing) assigns(*writer) {}

// refuses reports whether some of the table's rules in a set may refuse a row.
func (w *writer) refuses(rules RuleSet) bool { return w.firstOf(rules) < ruleCount }

// firstOf returns the first of these rules, or ruleCount.
func (w *writer) firstOf(rules RuleSet) int {
	for _, r := range w.rules.Has {
		if rules.Has(r) && texts[r].refuses(w) {
			return r
		}
	}
	return ruleCount
}

// check writes the conditions of the rules of a set that may refuse a row. A CASE keeps the order of precedence, which
// AND doesn't guarantee.
func (w *writer) check(rules RuleSet) {
	first := w.firstOf(rules)
	later := rules &^ upTo(first)
	switch {
	case first == ruleCount:
		w.bool(true)
	case !w.refuses(later):
		texts[first].check(w)
	default:
		w.write("CASE WHEN ")
		texts[first].check(w)
		w.write(" THEN ")
		w.check(later)
		w.write(" ELSE ")
		w.bool(false)
		w.write(" END")
	}
}

// checkFirst writes the check of the rules that may refuse a row before the first assignment of a SET list: an
// assignment of a column to itself.
func (w *writer) checkFirst(rules RuleSet) {
	if !w.refuses(rules) {
		return
	}
	w.writeAssigned("", w.rules.Quoted.Steady)
	w.write("CASE WHEN ")
	w.check(rules)
	w.write(" THEN ", w.target.Qualifier, ".", w.rules.Quoted.Steady, " END, ")
}

// writeAssigned writes a separator, the column to be assigned, and the equals sign.
func (w *writer) writeAssigned(separator, column string) {
	w.write(separator)
	w.assignedColumn(column)
	w.write(" = ")
}

// assignedColumn writes a column where it is assigned.
func (w *writer) assignedColumn(column string) {
	if w.Dialect.Guard.SetsInOrder.Is() {
		w.write(w.target.Qualifier, ".")
	}
	w.write(column)
}

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

// AllRules is the set of all rules.
const AllRules RuleSet = 1<<ruleCount - 1

// SetOf returns the set of some rules.
func SetOf(rules ...int) (s RuleSet) {
	for _, r := range rules {
		s |= 1 << r
	}
	return s
}

// upTo returns the set of a rule and all preceding rules.
func upTo(r int) RuleSet { return RuleSet(1)<<(r+1) - 1 }

// Has reports whether a rule is in the set.
func (s RuleSet) Has(r int) bool { return s>>r&1 != 0 }
