package rewrite

import (
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// precedence is the order in which a table's rules are asked about a row that is there:
// of several that refuse it, the first one's reason is raised. Who has lost the resource
// is not to read again and retry, so a token comes before a conflict of serials; and who
// has read an old version is not to wait for a lock.
var precedence = [...]rule{
	ruleLedger:   ledger{},
	ruleKey:      key{},
	ruleRowFence: rowFence{},
	ruleClaim:    claim{},
	ruleTakeover: takeover{},
	ruleSerial:   serial{},
	ruleEditLock: editLock{},
}

// The rules, in the order of precedence.
const (
	ruleLedger = iota
	ruleKey
	ruleRowFence
	ruleClaim
	ruleTakeover
	ruleSerial
	ruleEditLock
	ruleCount
)

// A rule is one way of guarding a table. Those of its methods that have a planner decide
// about a part of the write that it plans: false, after a refusal, where that can't be
// guarded. What a rule writes is its [ruleText].
type rule interface {
	// adds returns the column that INSERT adds to a row; the zero value for none.
	adds(t *registered) added

	// assigned decides about an item of a SET list of a table with columns of the rule;
	// upsert says whether there is an excluded row.
	assigned(p writing, a *read.Assignment, upsert bool) bool

	// inserted decides the same about column n that an INSERT names, at a token.
	inserted(p inserting, column string, token int32, n int) bool

	// inSet reports whether an UPDATE of t that is written in this way assigns something
	// besides.
	inSet(t *registered, how rowWrite) bool

	// inWhere reports whether a row of t that is written in this way has to be checked in
	// the condition; else assigns does it, or there is nothing to check.
	inWhere(t *registered, how rowWrite) bool
}

// addsNothing is of a rule that gives the rows of an INSERT no column.
type addsNothing struct{}

func (addsNothing) adds(*registered) added { return added{} }

// setsNothing is of a rule that has nothing against a column that a statement names, and assigns none.
type setsNothing struct{}

func (setsNothing) assigned(writing, *read.Assignment, bool) bool { return true }
func (setsNothing) inserted(inserting, string, int32, int) bool     { return true }
func (setsNothing) inSet(*registered, rowWrite) bool               { return false }

// An added column is one that a rule adds to the rows of an INSERT.
type added struct {
	what   string // what the rule keeps there
	column string // quoted
	value  string // the same for all rows and renderings, or empty
}

// A rowWrite is the way in which an existing row is written.
type rowWrite struct {
	updates    bool // or else it is deleted
	setsNumber bool // the statement assigns the serial or the claim itself
	takesOver  bool // it raises the claim, and needs no token
	versioned  bool // the row has to be at the caller's serial
	checked    bool // before the first assignment
	joined     bool // its row is one of several that are joined
	newKey     bool // the statement assigns a value that has to be the row's key
	returnsKey bool // it gives the key its own value by a function, which may have changed it
}

// checks returns the rules that a row is to meet. The ledger's check isn't among them, as it
// doesn't depend on the row.
func (how rowWrite) checks() ruleSet {
	if how.takesOver {
		return allRules &^ setOf(ruleLedger, ruleClaim)
	}
	return allRules &^ setOf(ruleLedger, ruleTakeover)
}

// inWhere returns the rules that check a row of t in the condition: none, or, if one of
// them needs the condition, all of them, so that their order is kept.
func (how rowWrite) inWhere(t *registered) ruleSet {
	if how.checked {
		return 0
	}
	for _, r := range t.has {
		switch {
		case !precedence[r].inWhere(t, how):
		case how.setsNumber:
			return how.checks() &^ setOf(ruleEditLock)
		default:
			return how.checks()
		}
	}
	return 0
}

// ruleSet is a set of rules.
type ruleSet uint8

const allRules ruleSet = 1<<ruleCount - 1

func setOf(rules ...int) (s ruleSet) {
	for _, r := range rules {
		s |= 1 << r
	}
	return s
}

func (s ruleSet) has(r int) bool { return s>>r&1 != 0 }

// A ruleText writes what a rule checks and assigns, for the table and the target that the writer has chosen.
type ruleText interface {
	// refuses reports whether check may refuse a row in this rendering.
	refuses(w *writer) bool

	// check writes the condition that is true for a row that may be written, and
	// raises for another one. It is never NULL, and false should the raise fail: then
	// the row is not written.
	check(w *writer)

	// assigns writes what an UPDATE assigns besides, with a comma before it.
	assigns(w *writer)
}

var texts = [ruleCount]ruleText{
	ruleLedger:   ledgerText{},
	ruleKey:      keyText{},
	ruleRowFence: rowFenceText{},
	ruleClaim:    claimText{},
	ruleTakeover: takeoverText{},
	ruleSerial:   serialText{},
	ruleEditLock: editLockText{},
}

// assignsNothing is of a rule that assigns nothing.
type assignsNothing struct{}

func (assignsNothing) assigns(*writer) {}

// check writes the condition of those rules of a set that may refuse a row, in the order
// of precedence: AND would give none.
func (w *writer) check(rules ruleSet) {
	last := -1
	for r := range texts {
		if rules.has(r) && texts[r].refuses(w) {
			if last >= 0 {
				w.write("CASE WHEN ")
				texts[last].check(w)
				w.write(" THEN ")
			}
			last = r
		}
	}
	if last < 0 {
		w.bool(true)
		return
	}
	texts[last].check(w)
	for r := range last {
		if rules.has(r) && texts[r].refuses(w) {
			w.write(" ELSE ")
			w.bool(false)
			w.write(" END")
		}
	}
}

// checkFirst writes the check of those rules of a set that may refuse a row before the first
// assignment of a SET list: a column is assigned what it has.
func (w *writer) checkFirst(rules ruleSet) {
	for r := range texts {
		if !rules.has(r) || !texts[r].refuses(w) {
			continue
		}
		w.writeAssigned("", w.rules.quoted.steady)
		w.write("CASE WHEN ")
		w.check(rules)
		w.write(" THEN ", w.target.qualifier, ".", w.rules.quoted.steady, " END, ")
		return
	}
}

// writeAssigned writes a column to be assigned, behind a separator, and the equals sign.
func (w *writer) writeAssigned(separator, column string) {
	w.write(separator)
	w.assignedColumn(column)
	w.write(" = ")
}

// assignedColumn writes a column where it is assigned.
func (w *writer) assignedColumn(column string) {
	if w.dialect.guard.SetsInOrder.Is() {
		w.write(w.target.qualifier, ".")
	}
	w.write(column)
}

// raiseFor raises for a rule with a table's marker where the rule isn't asked in a
// check: after those before it.
func (w *writer) raiseFor(r int, kind guard.Kind, column string, detail ...string) {
	if w.dialect.guard.SetsInOrder.Is() { // they were asked before the first assignment
		w.raiseAfterLedger(kind, column, detail...)
		return
	}
	before := (ruleSet(1)<<r - 1) &^ setOf(ruleLedger)
	for r := range texts {
		if before.has(r) && texts[r].refuses(w) {
			w.write("CASE WHEN ")
			w.check(before)
			w.write(" THEN ")
			w.raiseAfterLedger(kind, column, detail...)
			w.write(" END")
			return
		}
	}
	w.raiseAfterLedger(kind, column, detail...)
}
