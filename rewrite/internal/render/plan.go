// Package render writes guarded statements: the statement's bytes, and between them the checks and assignments of the
// tables' rules for the tokens of one execution. Package rules finds the places of these insertions, and a [Plan] holds
// the places. Before a plan is used, the rendered text is compared with the statement that was read.
package render

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/guard"
)

// A Plan is the decision about one statement text. It is immutable and safe for concurrent use.
type Plan struct {
	// Verdict is "pass" if the statement writes to no table of the rewriter, and is sent unchanged. It is "guard" if
	// the statement writes to a table, and the result of [Plan.Render] is sent. It is "refuse" if the statement can't
	// be guarded.
	Verdict guard.Verdict
	Refusal guard.Refusal // the reason, if Verdict is "refuse"

	// Settings are the numbers of the arguments that name a setting, unless Verdict is "refuse". The statement must be
	// refused for the reason [sqltext.DynamicSetting] unless each value is an [sqltext.IsApplicationSetting].
	Settings []int

	// The other fields are set if Verdict is "guard".

	// Tables are the registered tables that the statement writes to, each once, in the order of their appearance, as
	// indexes among the rewriter's tables.
	Tables []int

	// Targets are the writes to the Tables, with the details that the caller must check for each write. A
	// data-modifying WITH can add several.
	Targets []Written

	// Inputs is the number of arguments that the statement takes.
	Inputs int

	// Params reports whether the guard's values can be passed as arguments in addition to the statement's arguments.
	// Otherwise the values are written into the text (see [Values.Literal]): if the placeholders have names or are of
	// several kinds, or if there are many placeholders.
	Params bool

	// Serial and Locks report whether one of the Tables has a serial column or a lock. Tokenless reports whether one of
	// the Tables is [guard.Table.Tokenless], so that the statement is guarded even without tokens.
	Serial, Locks, Tokenless bool

	// Aborts reports whether the guard adds OR ABORT: a broken constraint then undoes the statement, even if SQLite's
	// table declares otherwise.
	Aborts bool

	// Versioned reports whether the statement throws an error for a row with a serial other than [Values.Serial]. If
	// the statement reaches no row, the caller must report that the row is gone.
	Versioned bool

	// Returns reports whether a versioned statement returns rows.
	Returns bool

	// ReturnsChecks reports whether the guard adds a RETURNING to the statement to compare tokens. The statement then
	// returns rows that the caller didn't request. The sender must discard these rows.
	ReturnsChecks bool

	// Rows reports whether a write has a RETURNING, from the statement or from the guard, or is run by EXPLAIN.
	Rows bool

	// Ignores reports whether a write has IGNORE.
	Ignores bool

	// AssignsTwice reports whether an upsert assigns a column twice: first to check the row, then to store the token.
	// The guard works only if the session stores the last value.
	AssignsTwice bool

	// ReadsAssigned reports whether the guard of an UPDATE compares a key that the statement sets by
	// last_insert_id(key). The comparison works only if a later item of SET sees the value of an earlier item.
	ReadsAssigned bool

	// ChecksLimited reports whether the condition of a write with a LIMIT checks the rows. The guard works only if the
	// server evaluates the condition for the row that it writes.
	ChecksLimited bool

	// ChecksLate reports whether some table's ledger is checked only at the end. A stale write that breaks a constraint
	// then gets the constraint's error.
	ChecksLate bool

	// MultiStatement is 0 for a single statement. In a multi-statement string it is the offset in bytes of another
	// statement. The text must be executed without arguments, by a call that executes all its statements.
	MultiStatement int

	// Unsettles reports whether the text may change its session, or where the session finds names: see
	// [session.Session.Follow].
	Unsettles bool

	// Alone reports whether only blanks follow the statement and its semicolon, so that a driver that prepares the text
	// has prepared the whole text.
	Alone bool

	Source Source
	Form   *Form // the form for one token per table, as arguments, with all tables enforced
}

var Pass = &Plan{Verdict: guard.Pass}

// rules returns the rules of the plan's table i.
func (p *Plan) rules(i int) *Registered { return p.Source.RulesOf(p.Tables[i]) }

// CountRows records where the rows of each target begin among the rows of the target's table.
func (p *Plan) CountRows() {
	if len(p.Targets) == 1 {
		return
	}
	p.Source.rows = make([]int, len(p.Tables))
	for i := range p.Targets {
		t := &p.Targets[i]
		rows := &p.Source.rows[t.Table]
		t.firstRow = *rows
		*rows += len(t.Keys)
	}
}

// rows returns how many rows the targets of the plan's table i have.
func (p *Plan) rows(i int) int {
	if len(p.Targets) == 1 {
		return len(p.Targets[0].Keys)
	}
	return p.Source.rows[i]
}

// isFree reports whether no write to the plan's table i needs a token.
func (p *Plan) isFree(i int) bool {
	return !slices.ContainsFunc(p.Targets, func(t Written) bool { return t.Table == i && !t.Free })
}

// A Written is a target, with the details that the guard's SQL needs.
type Written struct {
	guard.Target

	firstRow  int    // index of the target's first row among the rows in Keys of all targets of the table
	Qualifier string // the name before the target's columns in the guard
	Prefix    string // the schema as the statement names it, quoted and with its dot; empty without a schema
	Late      bool   // an INSERT that writes rows before the ledger is checked
}

// Planned is a plan with preallocated memory for the usual contents of a plan.
type Planned struct {
	Plan
	Table     [1]int
	Target    [1]Written
	Fragments [2]Fragment
	Form      Form
}

// The sizes of a plan's parts in bytes, rounded up.
const (
	planBytes     = 432
	plannedBytes  = 824 // a plan with its form
	argBytes      = 48
	targetBytes   = 160
	keyValueBytes = 48
	bareBytes     = 8
	fragmentBytes = 48
	numberBytes   = 8
	tableBytes    = 448
	valueBytes    = 32
)

// Size returns about how many bytes a plan takes, without the statement's text.
func (p *Plan) Size() int {
	if p == Pass {
		return 0
	}
	n := planBytes + len(p.Refusal.Reason)
	if p.Form != nil {
		n = plannedBytes + len(p.Form.sql) + cap(p.Form.args)*argBytes
	}
	n += cap(p.Tables) * numberBytes
	n += cap(p.Targets) * targetBytes
	for i := range p.Targets {
		t := &p.Targets[i]
		n += (cap(t.Keys)+cap(t.NewKeys))*keyValueBytes + len(t.Qualifier) + len(t.Prefix)
	}
	n += cap(p.Source.Repeats.Bare)*bareBytes + cap(p.Source.Repeats.Ends)*numberBytes
	n += cap(p.Source.Fragments) * fragmentBytes
	n += cap(p.Source.Covered) * tableBytes
	n += p.Source.Replacement.size()
	for i := range p.Source.Fragments {
		n += len(p.Source.Fragments[i].Text)
	}
	return n
}

// Covered returns the plan's table i and the index of the pattern that covers the table; ok is false for a table that
// is registered by name.
func (p *Plan) Covered(i int) (t *guard.Table, pattern int, ok bool) {
	if p.Tables[i] < len(p.Source.Tables) {
		return nil, -1, false
	}
	rules := p.rules(i)
	return &rules.Table, rules.CoveredBy, true
}

// Refused returns a plan for the same tables that refuses the statement for a reason.
func (p *Plan) Refused(reason string) *Plan {
	why := guard.Refusal{Table: -1, Offset: -1, Reason: reason}
	switch {
	case p.Verdict == guard.Refuse:
		why.Table, why.Name = p.Refusal.Table, p.Refusal.Name
	case len(p.Tables) > 0:
		why.Table = p.Tables[0]
		if t, pattern, ok := p.Covered(0); ok {
			why.Table, why.Name = pattern, t.FullName()
		}
	}
	return &Plan{Verdict: guard.Refuse, Refusal: why, Tables: p.Tables, Source: Source{TableList: p.Source.TableList}}
}
