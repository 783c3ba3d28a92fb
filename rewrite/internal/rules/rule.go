package rules

import (
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// precedence is the order in which a table's rules check an existing row. If several rules refuse the row, the error
// has the first rule's reason. A token comes before a conflict of serials, because a stale holder must not read again
// and retry. A conflict of serials comes before a lock, because a writer with an old version must not wait for a lock.
var precedence = [...]rule{
	render.RuleLedger:   ledger{},
	render.RuleKey:      key{},
	render.RuleRowFence: rowFence{},
	render.RuleClaim:    claim{},
	render.RuleTakeover: takeover{},
	render.RuleSerial:   serial{},
	render.RuleEditLock: editLock{},
	render.RuleSealed:   sealed{},
}

// A rule is one way of guarding a table. assigned and inserted decide about a part of the planned write, and return
// false, after a refusal, if the part can't be guarded. The rule's ruleText in package render writes its SQL.
type rule interface {
	// adds returns the column that the rule adds to the rows of an INSERT; its zero value if the rule adds no column.
	adds(t *render.Registered) added

	// assigned decides about an item of the SET list of an UPDATE or upsert. upsert reports whether the item can refer
	// to the row that was to be inserted, as excluded.
	assigned(p writing, a *read.Assignment, upsert bool) bool

	// inserted decides about column n of an INSERT's list of columns, which is named at a token.
	inserted(p inserting, column string, token int32, n int) bool

	// inSet reports whether the rule adds an assignment to an UPDATE of t.
	inSet(t *render.Registered, how rowWrite) bool

	// inWhere reports whether the WHERE must check a row of t. Otherwise the rule's assignment in the SET list checks
	// the row, or there is nothing to check.
	inWhere(t *render.Registered, how rowWrite) bool
}

// addsNothing is embedded in a rule that adds no column to the rows of an INSERT.
type addsNothing struct{}

func (addsNothing) adds(*render.Registered) added { return added{} }

// setsNothing is embedded in a rule that has no objection to a column that the statement assigns or inserts, and that
// adds no assignment to an UPDATE.
type setsNothing struct{}

func (setsNothing) assigned(writing, *read.Assignment, bool) bool { return true }

func (setsNothing) inserted(inserting, string, int32, int) bool { return true }

func (setsNothing) inSet(*render.Registered, rowWrite) bool { return false }

// An added column is a column that a rule adds to the rows of an INSERT.
type added struct {
	what   string // what the rule keeps there
	column string // quoted
	value  string // the same for all rows and renderings, or empty
}

// A rowWrite is the way in which an existing row is written.
type rowWrite struct {
	updates    bool // the row is updated, not deleted
	setsNumber bool // the statement itself assigns the row version or the claim
	takesOver  bool // the write increments the claim, and needs no token
	versioned  bool // the row's version must be the caller's
	checked    bool // the guard checks the row before the first assignment
	joined     bool // the row is joined with rows of other tables
	newKey     bool // the statement assigns the key a value, which must be the row's key
	returnsKey bool // the statement assigns the key to itself by a function, which may change the value
}

// checks returns the rules that check a row of this write. The ledger's check is left out, because it doesn't depend on
// the row.
func (how rowWrite) checks() render.RuleSet {
	if how.takesOver {
		return render.AllRules &^ render.SetOf(render.RuleLedger, render.RuleClaim)
	}
	return render.AllRules &^ render.SetOf(render.RuleLedger, render.RuleTakeover)
}

// inWhere returns the rules that check a row of t in the condition. If one rule needs the condition, all rules check
// the row there, so that their order is kept. Otherwise inWhere returns no rule.
func (how rowWrite) inWhere(t *render.Registered) render.RuleSet {
	if how.checked {
		return 0
	}
	for _, r := range t.Has {
		switch {
		case !precedence[r].inWhere(t, how):
		case how.setsNumber:
			return how.checks() &^ render.SetOf(render.RuleEditLock)
		default:
			return how.checks()
		}
	}
	return 0
}
