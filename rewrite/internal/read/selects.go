package read

// A SelectCondition is a WHERE or HAVING in a SELECT of an INSERT's query, or where it could be added.
type SelectCondition struct {
	Condition
	Having bool
	NoFrom bool // the SELECT has no FROM; an added WHERE must follow a FROM
}

// SelectCondition returns the condition that decides whether a SELECT in an INSERT's query has rows; the SELECT ends at
// token end. The condition is the WHERE, with one exception: a SELECT with a possible aggregate and without GROUP BY
// returns a row even if no row meets the WHERE, which the servers may then not evaluate. ok is false for unfamiliar
// clauses, such as ROLLUP, and for a window function in a SELECT with HAVING, which has crashed MySQL 9.7.
func (t *Text) SelectCondition(arm RowArm, end int32) (c SelectCondition, ok bool) {
	end, ok = t.selectEnd(arm, end)
	if !ok || !arm.Select {
		return c, false
	}
	at, ok := t.clauses(int(arm.After), int(end))
	if !ok {
		return c, false
	}
	c.NoFrom = !t.isWord(&t.Tokens[arm.After], "from")
	from, to, behind := at[whereClause], at[groupClause], at[havingClause]
	groups := to < behind
	if groups && t.groupsBySets(to, behind) {
		return c, false
	}
	c.Having = !groups && (behind < at[tailClause] || t.mayAggregate(int(arm.Columns.Lo), int(arm.Columns.Hi)) ||
		t.mayAggregate(at[tailClause], int(end)))
	if c.Having {
		if t.hasWindow(int(arm.Columns.Lo), int(end)) {
			return c, false
		}
		from, to = behind, at[tailClause]
	}
	if c.At = int32(from); from < to {
		c.Range = rangeOf(from+1, to)
	}
	return c, from == to || !c.Empty()
}

// groupsBySets reports whether the GROUP BY at lo may have a group without rows.
func (t *Text) groupsBySets(lo, hi int) bool {
	for i := lo + 2; i < hi; i++ {
		tok, before := &t.Tokens[i], &t.Tokens[i-1]
		all := tok.Is('(') && int(tok.Mate) == i+1 && (i == lo+2 || before.Is(','))
		if all || t.isWord(tok, "rollup", "cube", "grouping") {
			return true
		}
	}
	return false
}

// hasWindow reports whether an expression calls a window function.
func (t *Text) hasWindow(lo, hi int) bool {
	for i := lo; i < hi; i++ {
		if t.isWord(&t.Tokens[i], "over") {
			return true
		}
	}
	return false
}

// The clauses after FROM that may hold a condition, or end a condition.
const (
	whereClause = iota
	groupClause
	havingClause
	tailClause // ORDER BY, LIMIT, FOR UPDATE and LOCK IN SHARE MODE
	clauseCount

	noClause      = -1
	unknownClause = -2
)

// clauses returns the tokens at which the clauses of a SELECT begin. A missing clause gets the token before which the
// clause would stand. ok is false if a clause is unknown.
func (t *Text) clauses(lo, hi int) (at [clauseCount]int, ok bool) {
	next := 0
	for i := lo; i < hi; i = t.Skip(i) {
		switch clause := t.clauseAt(i); {
		case clause == noClause, clause == tailClause && next == clauseCount:
		case t.isWord(&t.Tokens[i], "offset") && next == clauseCount: // of LIMIT
		case clause < next:
			return at, false
		default:
			for ; next <= clause; next++ {
				at[next] = i
			}
		}
	}
	for ; next < clauseCount; next++ {
		at[next] = hi
	}
	return at, true
}

// clauseAt returns the clause that begins at i.
func (t *Text) clauseAt(i int) int {
	tok, next := &t.Tokens[i], &t.Tokens[i+1]
	switch {
	case tok.Label:
		return noClause
	case t.isWord(tok, "where"):
		return whereClause
	case t.isWord(tok, "group") && t.isWord(next, "by"):
		return groupClause
	case t.isWord(tok, "having"):
		return havingClause
	case t.isWord(tok, "order") && t.isWord(next, "by"), t.isWord(tok, "limit"),
		t.isWord(tok, "for") && t.isWord(next, "update", "share"), t.isWord(tok, "lock") && t.isWord(next, "in"):
		return tailClause
	case t.isWord(tok, "for") && t.isWord(next, "system_time"): // of a table
		return noClause
	case t.isWord(tok, "window", "procedure", "into", "for", "lock", "offset", "fetch", "qualify", "with"),
		t.isWord(tok, "rows") && t.isWord(next, "examined"): // the limit counts the guard's rows as well
		return unknownClause
	}
	return noClause
}

// selectEnd returns the end of one SELECT of a query: at UNION, INTERSECT, EXCEPT or RETURNING, or at a closing
// bracket, which must then contain the whole query.
func (t *Text) selectEnd(arm RowArm, end int32) (int32, bool) {
	for i := int(arm.After); i < int(end); i = t.Skip(i) {
		switch tok := &t.Tokens[i]; {
		case tok.Label:
		case t.isWord(tok, "returning"), t.isWord(tok, "union", "except", "intersect"):
			return int32(i), true
		case tok.Is(')'):
			before := &t.Tokens[tok.Mate-1]
			return int32(i), i+1 == int(end) && !t.isWord(before, "union", "except", "intersect", "all", "distinct")
		}
	}
	return end, true
}

// mayAggregate reports whether an expression calls a function that isn't known to return one value for one row. A
// function with a schema is the application's, whatever its name. A name with a blank before the bracket, as in TRIM
// (x), may also mean the application's function.
func (t *Text) mayAggregate(lo, hi int) bool {
	for i := lo; i+1 < hi; i++ {
		tok, next := &t.Tokens[i], &t.Tokens[i+1]
		switch {
		case t.isWord(tok, "select"):
			return true
		case !isName(tok) || !next.Is('('):
		case t.Tokens[i-1].Is('.'):
			return true
		case !t.isWord(tok, beforeBracket...) && !(tok.End == next.Start && t.isWord(tok, ofOneRow...)):
			return true
		}
	}
	return false
}

// beforeBracket are words that aren't functions, or are reserved; ofOneRow are functions of one row's values.
var (
	beforeBracket = []string{"and", "or", "not", "in", "between", "like", "case", "when", "then", "else", "char",
		"decimal", "coalesce", "if"}
	ofOneRow = []string{"cast", "now", "current_timestamp", "utc_timestamp", "unix_timestamp", "uuid",
		"ifnull", "nullif", "concat", "lower", "upper", "length", "trim", "abs", "round"}
)
