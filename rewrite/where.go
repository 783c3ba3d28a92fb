package rewrite

import "strings"

// where guards the rows that a statement reaches, from the place where its
// WHERE stands or would stand to its end.
//
// The check raises, so it may only be evaluated for rows that the user's own
// condition holds for; AND gives no order, CASE does. The condition inside of
// CASE is no use to an index, so the parts of it that may be evaluated twice
// are repeated outside.
//
// from is where the tables begin that the rows are joined with.
func (r *reader) where(t *target, from int) bool {
	check, ledger := t.inWhere(t.rules), t.rules.Ledger && dialects[r.dialect].ledgerInWhere()
	var lo, hi int
	prev := r.toks[r.i-1].end
	if r.accept("where") {
		lo = r.i
		hi = r.until("returning", "order", "limit")
		if lo == hi {
			return r.refuse(t.table, lo, "a condition is missing here")
		}
		if check && r.isWord(r.toks[lo], "current") && r.isWord(r.toks[lo+1], "of") {
			return r.refuse(t.table, lo, "WHERE CURRENT OF can't be guarded here; select the row by its key")
		}
	}
	if !r.ownSerial(t, from, r.i) {
		return false
	}
	if r.returning() {
		r.until("order", "limit")
	}
	if (check || t.rowWrite.versioned) && r.isWord(r.tok(), "order", "limit") {
		return r.refuse(t.table, r.i, "a guard can't see which rows LIMIT leaves; select the rows in WHERE, by their keys")
	}
	if r.dialect == SQLite {
		r.until()
	}
	if r.i != r.stop {
		return r.refuse(t.table, r.i, "this part of the statement can't be read")
	}
	if !check && !ledger {
		return true
	}
	r.whereEdits(t, prev, lo, hi, check, ledger)
	return true
}

// whereEdits writes the guard around the condition lo to hi, or a new WHERE at
// prev if there is none.
func (r *reader) whereEdits(t *target, prev int32, lo, hi int, check, ledger bool) {
	at := prev
	if lo < hi && r.dialect == SQLite && r.isWord(r.toks[lo], "with") {
		// The guard puts the condition in brackets, and there SQLite reads the keyword.
		r.refuse(t.table, lo, "the condition begins with a column called with, which a guard can't be put before; put the name in quotes")
	}
	if lo < hi {
		at = r.toks[hi-1].end
		open := "("
		if check {
			open = "CASE WHEN ("
		}
		r.insertText(r.toks[lo].start, open)
	} else {
		r.insertText(at, " WHERE ")
	}
	rules := t.rowWrite.rules()
	if ledger {
		rules |= setOf(ruleLedger)
	}
	switch {
	case check && lo < hi:
		r.insertText(at, ") THEN ")
		r.insert(at, opCheck, t, rules, "")
		r.insertText(at, " ELSE "+dialects[r.dialect].Bool(false)+" END")
		for _, c := range r.repeatable(lo, hi) {
			r.insertText(at, " AND ("+r.source(c[0], c[1])+")")
		}
	case check:
		r.insert(at, opCheck, t, rules, "")
	case lo < hi:
		r.insertText(at, ")")
	}
	if ledger && !check {
		if lo < hi {
			r.insertText(at, " AND ")
		}
		r.insert(at, opAnd, t, setOf(ruleLedger), "")
	}
}

// repeatable returns the parts of a condition that it is the conjunction of and
// that may be evaluated twice: no subquery, which might take locks, and no call
// of a function that might be volatile.
func (r *reader) repeatable(lo, hi int) [][2]int {
	if r.isPure(lo, hi) {
		return [][2]int{{lo, hi}}
	}
	var parts [][2]int
	var p phrase
	from, betweens := lo, 0
	for i := lo; i < hi; i = r.skip(i) {
		switch keyword, t := p.step(r, i), r.toks[i]; {
		case p.doubtful:
			r.doubt(i)
			return nil
		case !keyword || p.cases > 0:
		case r.isWord(t, "when", "then"): // the CASE was taken for a name
			r.doubt(i)
			return nil
		case r.isWord(t, "or"):
			return nil
		case r.isWord(t, "between"):
			betweens++
		case r.isWord(t, "and") && betweens > 0:
			betweens--
		case r.isWord(t, "and"):
			parts = append(parts, [2]int{from, i})
			from = i + 1
		}
	}
	pure := parts[:0]
	for _, p := range append(parts, [2]int{from, hi}) {
		if p[0] < p[1] && r.isPure(p[0], p[1]) && !r.mayFail(p[0], p[1]) {
			pure = append(pure, p)
		}
	}
	return pure
}

// mayFail holds for a part of a condition that some rows may be an error for. Another
// part may leave those out, one that isn't repeated and so is evaluated later: what
// is in a column has to be JSON for ->> in SQLite, and a number for a cast in PostgreSQL.
func (r *reader) mayFail(lo, hi int) bool {
	for i := lo; i < hi; i++ {
		t, next := r.toks[i], r.toks[i+1]
		arrow := isPunct(t, '-') && isPunct(next, '>') && next.start == t.end
		switch {
		case r.isWord(t, "abs"):
			return true
		case r.dialect == SQLite:
			if arrow {
				return true
			}
		case r.isWord(t, "cast"):
			return true
		case isPunct(t, ':') && isPunct(next, ':'):
			if k := r.toks[i-1].kind; k != param && k != text && k != number {
				return true
			}
			i++
		case t.kind == punct && !arrow && strings.IndexByte("+-*/%^", t.char) >= 0:
			if negative := i > lo && r.toks[i-1].kind == punct && !isPunct(r.toks[i-1], ')') && next.kind == number; !negative {
				return true
			}
		}
	}
	return false
}

// isPure holds for an expression without subqueries and without calls of other
// than a few well-known functions.
func (r *reader) isPure(lo, hi int) bool {
	for i := lo; i < hi; i++ {
		t := r.toks[i]
		if r.isWord(t, "select", "values", "table", "with", "raise") {
			return false
		}
		if (t.kind == word || t.kind == quoted || t.kind == text) && i+1 < hi && isPunct(r.toks[i+1], '(') &&
			!r.isWord(t, "and", "or", "not", "in", "any", "all", "some", "between", "is", "like", "ilike", "escape",
				"when", "then", "else", "row", "cast",
				"coalesce", "nullif", "lower", "upper", "length", "abs") {
			return false
		}
	}
	return true
}
