package rewrite

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
	Refusal Refusal // of a plan to refuse

	// The rest is of a plan to guard.

	// Tables are the registered tables written to, each once, in the order of
	// their appearance, as indexes among the rewriter's.
	Tables []int

	// Targets are the writes to them: one, or several by data-modifying WITH.
	Targets []Target

	// Inputs is the number of arguments that the statement takes.
	Inputs int

	// Params tells whether the guard's values can be passed as arguments after
	// the statement's own; else they have to be written into the text.
	Params bool

	// Serial and Locks tell whether a table written to has a serial column, or
	// locks: then there is something to do without tokens, too.
	Serial, Locks bool

	// Aborts tells that the guard adds OR ABORT, except with [Values.Observe]: a broken
	// constraint undoes the statement, whatever SQLite's table declares.
	Aborts bool

	// Versioned tells that the statement applies only to rows at [Values.Serial],
	// or raises. If it reaches no row, the caller has to report that the row is gone.
	Versioned bool

	// Returns tells whether a versioned statement returns rows.
	Returns bool

	source source
	form   *defaultForm // of one token a table, as arguments, enforced
}

// rules returns those of the plan's table i.
func (p *Plan) rules(i int) *Table { return &p.source.tables[p.Tables[i]] }

// countRows notes where the rows of each target begin among those of its table.
func (p *Plan) countRows() {
	for i := range p.Targets {
		t := &p.Targets[i]
		for n := i - 1; n >= 0; n-- {
			if before := &p.Targets[n]; before.Table == t.Table {
				t.firstRow = before.firstRow + len(before.Keys)
				break
			}
		}
	}
}

// A Target is one write to a registered table.
type Target struct {
	Table int // index in Plan.Tables

	// Keys tells for each row of an INSERT where the value of the table's key
	// column stands. Nil for other writes and for tables without Key.
	Keys []KeyValue

	// AssignsKey tells of an UPDATE or upsert that it assigns the key column. It
	// keeps its rows in their token's scope only if the table has one token, whose
	// key the assigned one is: the guard sees to it that the old key is that too.
	// This is the caller's part to check. NewKeys tells for each assignment where
	// the value stands, except for one from a row of Keys.
	AssignsKey bool
	NewKeys    []KeyValue

	// Changes tells that the write is one of rows that are there: UPDATE, DELETE, or a
	// MERGE with such an arm. An upsert isn't, as it may insert.
	Changes bool

	firstRow  int    // among all rows of Keys of the table
	qualifier string // what its columns are qualified with in the guard
	schema    string // as the statement names it, quoted and with its dot; else empty
}

// A KeyValue is where a statement takes a row's key from: the argument of this
// name if there is one, else the one at this place, or a constant.
type KeyValue struct {
	Name    string // of a named argument, without its prefix; "" for none
	Ordinal int    // 1-based; 0 for none
	Text    string // of a constant, where Name is "" and Ordinal is 0
}

// planned is a plan with room for what plans mostly hold, allocated at once.
type planned struct {
	Plan
	table  [1]int
	target [1]Target
	edits  [6]edit
	form   defaultForm
}
