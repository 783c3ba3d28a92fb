package rewrite

import "slices"

// A Verdict says what to do with a statement.
type Verdict uint8

const (
	// Pass: it writes to no table of the rewriter's; send it as it is.
	Pass Verdict = iota
	// Guard: it writes to one; send what [Plan.Render] returns.
	Guard
	// Refuse: it writes or may write to one in a way that can't be guarded.
	Refuse
)

// String returns "pass", "guard" or "refuse".
func (v Verdict) String() string {
	return [...]string{"pass", "guard", "refuse"}[v]
}

// A Refusal says why a statement can't be guarded. It is an error.
type Refusal struct {
	Table  int    // index among the rewriter's tables, or -1
	Own    string // the table of sqlfence's own that it is about, or ""
	Reason string // what is wrong and what to write instead
	Offset int    // in bytes from the statement's start, or -1
}

// Error returns the reason.
func (r *Refusal) Error() string { return "rewrite: " + r.Reason }

// A Plan says what to do with one statement text. It is
// immutable and safe for concurrent use.
type Plan struct {
	Verdict Verdict
	Refusal Refusal // if Verdict is Refuse

	// Settings are the numbers of the arguments that name a setting, unless Verdict is Refuse. The
	// statement is to be refused for the reason [sqltext.UnseenSetting] unless each is a name that
	// [sqltext.IsApplicationSetting] knows.
	Settings []int

	// The other fields are set if Verdict is Guard.

	// Tables are the registered tables that the statement writes to, each once, in
	// the order of their appearance, as indexes among the rewriter's.
	Tables []int

	// Targets are the writes to them; a data-modifying WITH can add several.
	Targets []Target

	// Inputs is the number of arguments that the statement takes.
	Inputs int

	// Params reports whether the guard's values can be passed as arguments besides the
	// statement's own; else they are written into the text (see [Values.Literal]): if its
	// placeholders have names or are of several kinds, or there are many of them.
	Params bool

	// Serial and Locks report whether one of the Tables has a serial column or a lock,
	// and Tokenless whether one is [Table.Tokenless]: then the statement is guarded even
	// without tokens.
	Serial, Locks, Tokenless bool

	// Aborts reports whether the guard adds OR ABORT, except with [Values.Observe]: a broken
	// constraint then undoes the statement, even if SQLite's table declares otherwise.
	Aborts bool

	// Versioned reports whether the statement raises for a row at another serial than
	// [Values.Serial]. If it reaches no row, the caller has to report that the row is
	// gone.
	Versioned bool

	// Returns reports whether a versioned statement returns rows.
	Returns bool

	// ReturnsChecks reports whether the guard adds a RETURNING to the statement where it compares
	// tokens: it then returns rows that the caller didn't ask for and that the sender has to
	// discard.
	ReturnsChecks bool

	// Rows reports whether a write has RETURNING, also by the guard, or is run by EXPLAIN.
	Rows bool

	// AssignsTwice reports whether an upsert assigns a column first to check the row and then to mark
	// it, which holds only where the session stores the last value.
	AssignsTwice bool

	// AsksLate reports whether some table's ledger is asked at the end alone, so that a stale
	// write which breaks a constraint gets the constraint's error.
	AsksLate bool

	// Several is 0 for a single statement, and else where another one of the text's begins,
	// in bytes from its start. The text is to be executed without arguments, by what
	// executes all of them.
	Several int

	// Alone reports whether nothing but blanks stands behind the statement and its
	// semicolon, so that a driver that prepares the text has prepared all of it.
	Alone bool

	source source
	form   *defaultForm // of one token a table, as arguments, enforced
}

// rules returns the rules of the plan's table i.
func (p *Plan) rules(i int) *Table { return &p.source.tables[p.Tables[i]] }

// countRows notes where the rows of each target begin among those of its table.
func (p *Plan) countRows() {
	if len(p.Targets) == 1 {
		return
	}
	p.source.rows = make([]int, len(p.Tables))
	for i := range p.Targets {
		t := &p.Targets[i]
		rows := &p.source.rows[t.Table]
		t.firstRow = *rows
		*rows += len(t.Keys)
	}
}

// rows returns how many rows the targets of the plan's table i have.
func (p *Plan) rows(i int) int {
	if len(p.Targets) == 1 {
		return len(p.Targets[0].Keys)
	}
	return p.source.rows[i]
}

// isFree reports whether no write to the plan's table i needs a token.
func (p *Plan) isFree(i int) bool {
	return !slices.ContainsFunc(p.Targets, func(t Target) bool { return t.Table == i && !t.Free })
}

// A Target is one write to a registered table.
type Target struct {
	Table int // index in Plan.Tables

	// Keys has the source of the value of the table's key column: one for each row of an INSERT,
	// and one for each SELECT, as all of its rows have the same key. Nil for other writes and for
	// tables without Key.
	Keys []KeyValue

	// AssignsKey reports whether an UPDATE or upsert assigns the key column. Its rows
	// stay in their token's scope only if the table has a single token and the assigned
	// key is that token's, which the caller has to check; the guard checks the old key.
	// NewKeys has the source of each assigned value that isn't a row's of Keys.
	AssignsKey bool
	NewKeys    []KeyValue

	// OneKey reports whether the rows' keys don't show, so that Keys is nil, and each row's is
	// compared with the token once it is stored. The caller has to refuse several tokens.
	OneKey bool

	// Free reports whether the write needs no token: it can only add rows, to a table with
	// [Table.UnfencedInserts], or it adds rows or takes them over, of a table with [Table.Claim].
	Free bool

	// Changes reports whether the write changes existing rows: UPDATE, DELETE, or a
	// MERGE with such an arm. It is false for an upsert, which may insert.
	Changes bool

	firstRow  int    // among all rows of Keys of the table
	qualifier string // what its columns are qualified with in the guard
	name      string // the same, normalised
	schema    string // as the statement names it, quoted and with its dot; else empty
}

// A KeyValue is the source of a row's key in a statement: the argument called Name or, if no
// argument has a name, the one numbered Ordinal; or else a constant. It is Unknown if the statement
// doesn't show the key, for a row of a table with [Table.UnfencedInserts].
type KeyValue struct {
	Unknown bool
	Name    string // of a named argument, without its prefix; "" for none
	Ordinal int    // 1-based; 0 for none
	Text    string // of a constant, where Name is "" and Ordinal is 0
}

// planned is a plan with room for what plans mostly hold, allocated at once.
type planned struct {
	Plan
	table  [1]int
	target [1]Target
	edits  [2]edit
	form   defaultForm
}
