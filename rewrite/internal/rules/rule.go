package rules

import (
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// precedence is the order in which a table's rules check an existing row. If several rules refuse the row, the first
// rule's reason is raised. A token comes before a conflict of serials, because a stale holder must not read again and
// retry. A conflict of serials comes before a lock, because a writer with an old version must not wait for a lock.
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

// A rule is one way of guarding a table. The methods with a planner decide about a part of the planned write, and
// return false, after a refusal, if the part can't be guarded. The rule's [ruleText] writes its SQL.
type rule interface {
	// adds returns the column that INSERT adds to a row; the zero value for none.
	adds(t *render.Registered) added

	// assigned decides about an item of a SET list of a table with columns of the rule; upsert tells whether there is
	// an excluded row.
	assigned(p writing, a *read.Assignment, upsert bool) bool

	// inserted decides about column n that an INSERT names, at a token.
	inserted(p inserting, column string, token int32, n int) bool

	// inSet reports whether the rule adds an assignment to an UPDATE of t.
	inSet(t *render.Registered, how rowWrite) bool

	// inWhere reports whether the condition must check a row of t. Otherwise the rule's assignment checks the row, or
	// there is nothing to check.
	inWhere(t *render.Registered, how rowWrite) bool
}

// addsNothing is embedded in a rule that adds no column to the rows of an INSERT.
type addsNothing struct{}

func (addsNothing) adds(*render.Registered) added { return added{} }

// setsNothing is embedded in a rule that accepts all columns that a statement names, and assigns no column.
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
	updates    bool // or else it is deleted
	setsNumber bool // the statement assigns the serial or the claim itself
	takesOver  bool // it raises the claim, and needs no token
	versioned  bool // the row has to be at the caller's serial
	checked    bool // before the first assignment
	joined     bool // its row is one of several that are joined
	newKey     bool // the statement assigns a value that has to be the row's key
	returnsKey bool // it gives the key its own value by a function, which may have changed it
}

// checks returns the rules that a row must meet. The ledger's check is left out, because it doesn't depend on the row.
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
