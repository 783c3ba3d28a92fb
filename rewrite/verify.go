package rewrite

import (
	"strings"
	"sync"
)

// The second look reads what was rendered, and confirms that each piece of the
// guard stands where it guards: a mark inside the SET list of its own UPDATE, a
// check in the WHERE of its own verb, and so on. It takes nothing from the reader
// but what it wrote and where. A statement that it can't confirm is refused.
//
// Its own rules are few. A word that can only begin another clause ends a SET list
// and a WHERE, whatever the reader made of it. A bracket is a frame of its own. A
// piece begins and ends with whole tokens, so none is part of a string or comment.

// A piece is what one edit wrote, from lo to hi of the rendered text.
type piece struct {
	edit   *edit
	lo, hi int32
}

// unconfirmed is why a statement is refused that the second look can't confirm.
const unconfirmed = "the guard can't be confirmed to stand where it belongs; write the statement more plainly, with names that are keywords in quotes"

// part is the part of a statement that a frame is in.
type part uint8

const (
	atStart  part = iota
	inTarget      // behind the verb, up to the next part
	inSet
	inTables // FROM, USING, ON
	inWhere
	inValues
	inSelect
	inArm  // behind a MERGE's WHEN, up to THEN
	atThen // behind a MERGE's THEN or an upsert's DO
	inRest // RETURNING, ORDER BY and all else
)

// A frame is a bracket, or the whole text.
type frame struct {
	verb  string // update, delete, insert, merge
	arm   string // what a MERGE's arm does, or DO: update, delete, insert
	part  part
	with  bool    // it began with WITH
	name  scanned // of its target, or the alias
	named bool    // name is complete but for an alias
	cases int
	ended bool // an operand has ended
	or    bool // an OR stands in the condition, outside of CASE
	full  bool // the SET list has its mark, or the row its value
}

// A verifier takes one second look.
type verifier struct {
	dialect Dialect
	text    string
	toks    []scanned
	frames  []frame

	// Around a serial that the statement assigns stand two pieces: how many frames
	// there are outside of them, and between them; 0 elsewhere.
	outside, between int
}

var scannedPool = sync.Pool{New: func() any { s := make([]scanned, 0, 256); return &s }}

// look takes the second look at a rendered statement: whether its pieces stand where
// they guard, and whether [Plan.Inlines] holds.
func look(d Dialect, text string, pieces []piece) (confirmed, inlines bool) {
	buf := scannedPool.Get().(*[]scanned)
	toks, ok := scan(d, text, (*buf)[:0])
	if !ok {
		return false, false
	}
	v := verifier{dialect: d, text: text, toks: toks}
	var room [8]frame
	v.frames = append(room[:0], frame{})
	confirmed = v.walk(pieces)
	inlines = d != Postgres || inlined(text, toks)
	if cap(toks) <= 4096 {
		*buf = toks
		scannedPool.Put(buf)
	}
	return confirmed, inlines
}

func (v *verifier) top() *frame { return &v.frames[len(v.frames)-1] }

// is reports whether token i is one of the words, and not a label.
func (v *verifier) is(i int, words ...string) bool {
	if i < 0 || i >= len(v.toks) || v.toks[i].known == 0 || v.isLabel(i) {
		return false
	}
	word := v.toks[i].word()
	for _, w := range words {
		if word == w {
			return true
		}
	}
	return false
}

func (v *verifier) isLabel(i int) bool {
	if i == 0 {
		return false
	}
	t := v.toks[i-1]
	return t.kind == '.' || t.word() == "as" && (i < 2 || v.toks[i-2].kind != '.')
}

func (v *verifier) kind(i int) byte {
	if i < 0 || i >= len(v.toks) {
		return 0
	}
	return v.toks[i].kind
}

// walk goes through the tokens, and at each piece asks whether it belongs there.
func (v *verifier) walk(pieces []piece) bool {
	next, inside := 0, -1 // the piece to come, and the one that the token is of
	depth := 0            // of the piece
	for i := range v.toks {
		t := v.toks[i]
		if inside >= 0 && t.lo >= pieces[inside].hi {
			if !v.closes(i, pieces[inside], depth) {
				return false
			}
			inside = -1
		}
		if inside < 0 && next < len(pieces) && t.hi > pieces[next].lo {
			// The text of a piece may begin with a blank.
			if t.lo < pieces[next].lo || strings.TrimLeft(v.text[pieces[next].lo:t.lo], " ") != "" || !v.belongs(i, pieces[next]) {
				return false
			}
			inside, depth = next, len(v.frames)
			next++
		}
		if !v.step(i, inside >= 0) {
			return false
		}
	}
	if inside >= 0 && !v.closes(len(v.toks), pieces[inside], depth) {
		return false
	}
	return next == len(pieces) && len(v.frames) == 1 && v.between == 0
}

// closes reports whether a piece that began in a number of frames may end before
// token i.
func (v *verifier) closes(i int, p piece, frames int) bool {
	if v.toks[i-1].hi > p.hi {
		return false
	}
	switch p.edit.op {
	case opRaised:
		v.outside, v.between = frames, len(v.frames)
		return v.between > v.outside
	case opRaisedEnd:
		ok := len(v.frames) == v.outside
		v.between = 0
		last := i == len(v.toks) || v.kind(i) == ',' || v.kind(i) == ')' || v.kind(i) == ';'
		return ok && (last || v.ends(i))
	}
	return len(v.frames) == frames
}

// belongs reports whether a piece may begin with token i.
func (v *verifier) belongs(i int, p piece) bool {
	f := v.top()
	own := func() bool { return f.named && v.isNamed(f.name, p.edit.text) }
	switch p.edit.op {
	case opMark, opSerial:
		ok := f.part == inSet && f.cases == 0 && f.ended && v.kind(i) == ',' && own() &&
			(f.verb == "update" || f.arm == "update")
		f.full = true
		return ok
	case opRaised:
		f := f
		if v.kind(i-1) != '=' && len(v.frames) > 1 { // in a row of values
			f = v.parent()
		}
		return v.between == 0 && f.part == inSet && f.cases == 0 && f.named && v.isNamed(f.name, p.edit.text) &&
			(f.verb == "update" || f.arm == "update")
	case opRaisedEnd:
		return v.between > 0 && len(v.frames) == v.between && f.cases == 0
	case opCheck, opTokens:
		first := i - 1
		if v.is(i-1, "then") { // CASE WHEN (...) THEN
			open := v.opening(i - 2)
			if open < 0 || !v.is(open-1, "when") || !v.is(open-2, "case") || f.cases != 1 {
				return false
			}
			first = open - 3
		} else if f.cases != 0 {
			return false
		}
		return own() && (v.writesWhere(f) && v.is(first, "where") || f.part == inArm && v.is(first, "and") && v.is(first-1, "matched", "source", "target"))
	case opLedger:
		return v.writesWhere(f) && f.cases == 0 && !f.or && (v.is(i-1, "where") || v.is(i-1, "and"))
	case opColumn:
		f.full = true
		return len(v.frames) > 1 && v.isOf(v.parent(), "insert") && v.parent().part == inTarget
	case opValue:
		f.full = true
		row := len(v.frames) > 1 && v.parent().part == inValues
		return (row || f.part == inSelect) && v.inserts()
	case opStatements:
		return len(v.frames) >= 1 && v.atHead(i)
	case opAbort:
		return v.is(i-1, "update", "insert")
	case opGone:
		return f.verb == "insert"
	}
	return true
}

// writesWhere reports whether a frame is in the WHERE of a write: not in that of a
// conflict's index.
func (v *verifier) writesWhere(f *frame) bool {
	return f.part == inWhere && (f.verb == "update" || f.verb == "delete" || f.verb == "insert")
}

func (v *verifier) parent() *frame { return &v.frames[len(v.frames)-2] }

func (v *verifier) isOf(f *frame, verb string) bool { return f.verb == verb || f.arm == verb }

// inserts reports whether the rows of the current frame are those of an INSERT.
func (v *verifier) inserts() bool {
	for n := len(v.frames) - 1; n >= 0; n-- {
		f := &v.frames[n]
		if v.isOf(f, "insert") {
			return true
		}
		if f.verb != "" {
			return false
		}
	}
	return false
}

// opening returns the index of the bracket that the one at i closes.
func (v *verifier) opening(i int) int {
	for depth := 0; i >= 0; i-- {
		switch v.toks[i].kind {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return i
			}
		}
		if depth == 0 {
			return -1
		}
	}
	return -1
}

// atHead reports whether nothing but EXPLAIN, WITH and brackets stands before token i.
func (v *verifier) atHead(i int) bool {
	for i--; i >= 0 && v.toks[i].kind != ';'; i-- {
		switch {
		case v.is(i, "with", "recursive", "explain", "analyze", "analyse", "verbose"), v.toks[i].kind == '(':
		case v.toks[i].kind == ')': // EXPLAIN (...)
			if i = v.opening(i); !v.is(i-1, "explain") {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// step reads token i; mine tells that it is of a piece.
func (v *verifier) step(i int, mine bool) bool {
	f, t := v.top(), v.toks[i]
	if f.full && !mine && t.kind != ')' && t.kind != ';' {
		if !v.ends(i) {
			return false
		}
		f.full = false
	}
	switch t.kind {
	case '(', '[':
		inner := frame{}
		if f.part == inTarget && v.is(i-1, "only") {
			inner.part, inner.verb = inTarget, f.verb // ONLY (name)
		}
		v.frames = append(v.frames, inner)
		return true
	case ')', ']':
		if len(v.frames) == 1 || f.cases > 0 && f.part != inRest && f.part != inSelect && f.part != inTables {
			return false
		}
		v.frames = v.frames[:len(v.frames)-1]
		outer := v.top()
		outer.ended = true
		if outer.part == inTarget && !outer.named && f.part == inTarget {
			outer.name, outer.named = f.name, f.named
		}
		return true
	case ';':
		*f = frame{}
	case ',':
		f.ended = false
	case 'w':
		return v.word(i, mine)
	case 'q', 's', 'n', '$':
		v.operand(i)
	default: // all columns, or a placeholder of other drivers
		f.ended = (t.kind == '*' || t.kind == '?') && !f.ended
	}
	return true
}

// ends reports whether token i may stand behind a complete SET list or row.
func (v *verifier) ends(i int) bool {
	// The first serial is added behind the mark.
	return v.is(i, "from", "where", "returning", "order", "limit", "on", "when",
		"group", "having", "window", "union", "intersect", "except", "offset", "fetch", "for") ||
		v.kind(i) == ',' && v.top().part != inSet
}

// operand reads a token that is a value or a name; in a target it may be its name.
func (v *verifier) operand(i int) {
	f, t := v.top(), v.toks[i]
	other := v.is(i-1, "or") || v.is(i-1, "by") && v.is(i-2, "indexed") // OR ABORT, an index
	if f.part == inTarget && t.kind != 'n' && t.kind != '$' && !other {
		after := v.kind(i-1) == '.' || i > 0 && v.isLabel(i)
		if !f.named || after || v.dialect == Postgres {
			f.name, f.named = t, true
		}
	}
	f.ended = true
}

// isNamed reports whether a name is the one that the guard writes as quoted.
func (v *verifier) isNamed(t scanned, qualifier string) bool {
	s := v.text[t.lo:t.hi]
	if t.kind == 'w' && len(s) <= maxPostgresName {
		return equalFold(s, qualifier[1:len(qualifier)-1])
	}
	as := token{kind: quoted, start: t.lo, end: t.hi}
	switch t.kind {
	case 'w':
		as.kind = word
	case 's':
		as.kind = text
	}
	name, _ := normal(v.dialect, v.text, as)
	return quoteName(v.dialect, name) == qualifier
}

// word reads a word: as what begins another part, where it can only be that.
func (v *verifier) word(i int, mine bool) bool {
	f := v.top()
	if v.toks[i].known == 0 && f.part != atThen || v.isLabel(i) {
		v.operand(i)
		return true
	}
	verbs := f.verb == "" && f.part == atStart
	switch {
	case v.is(i, "with") && verbs: // or a name
		f.with, f.ended = true, true
	case v.is(i, "select") && verbs:
		f.part, f.ended = inSelect, false
	case v.is(i, "group") && v.is(i-1, "within") && v.kind(i+1) == '(', v.is(i, "on") && v.is(i-1, "distinct"):
	case f.with && verbs && v.is(i, "using", "from", "on"): // of CYCLE, or names
	case v.is(i, "update", "delete", "insert", "merge", "replace") && verbs && v.beginsWrite(i, f):
		f.verb, f.part = v.toks[i].word(), inTarget
	case f.part == inTarget:
		return v.target(i)
	case f.part == atThen:
		return v.arm(i)
	case v.is(i, "from") && v.is(i-1, "distinct") && v.is(i-2, "is", "not"):
		f.ended = false
	case v.clause(i, f):
	default:
		return v.expression(i, mine)
	}
	return true
}

// beginsWrite reports whether the verb at i begins a statement, which may stand
// behind WITH, and isn't the name of something.
func (v *verifier) beginsWrite(i int, f *frame) bool {
	if v.kind(i+1) == '(' || v.kind(i+1) == ',' || v.kind(i+1) == ')' || v.is(i+1, "as") {
		return false
	}
	first := i == 0 || v.kind(i-1) == '(' || v.kind(i-1) == ';'
	return first || f.with || v.kind(i-1) == ')' || v.is(i-1, "explain", "analyze", "analyse", "verbose")
}

// target reads a word behind a verb: up to SET, USING and the like it is a name.
func (v *verifier) target(i int) bool {
	f := v.top()
	switch {
	case v.is(i, "set"):
		if f.verb != "update" && f.arm != "update" || !f.named {
			return false
		}
		f.part, f.ended, f.cases = inSet, false, 0
	case v.is(i, "into", "from", "or") && !f.named, v.is(i, "as", "only", "not", "indexed"):
	case v.is(i, "by") && v.is(i-1, "indexed"):
	case v.is(i, "using"):
		f.part, f.ended = inTables, false
	case v.is(i, "values"):
		f.part = inValues
	case v.isOf(f, "insert") && v.is(i, "default", "overriding", "system", "user", "value"):
	case v.is(i, "select", "with"):
		f.part, f.ended = inSelect, false
	case v.clause(i, f):
	default:
		v.operand(i)
	}
	return true
}

// clause reads a word that can only begin another part of the statement.
func (v *verifier) clause(i int, f *frame) bool {
	merge := f.verb == "merge" && f.cases == 0
	switch {
	case v.is(i, "where"):
		f.part, f.or = inWhere, false
		if f.verb == "insert" && f.arm != "update" && v.conflict(i) {
			f.part = inRest
		}
	case v.is(i, "from", "using", "join"):
		f.part = inTables
	case v.is(i, "returning", "order", "limit", "group", "having", "union", "intersect", "except", "into"),
		v.dialect == Postgres && v.is(i, "window", "offset", "fetch", "for"):
		f.part = inRest
	case v.is(i, "select") && !f.ended:
		f.part = inSelect
	case v.is(i, "values") && !f.ended && v.kind(i+1) == '(':
		f.part = inValues
	case v.is(i, "on"):
		f.part = inTables
		if v.is(i+1, "conflict", "constraint") {
			f.part = inRest
		}
	case v.is(i, "do") && f.verb == "insert" && f.part == inRest && (v.is(i+1, "update") || v.is(i+1, "nothing")):
		f.part = atThen
	case v.is(i, "when") && merge && (v.is(i+1, "matched") || v.is(i+1, "not") && v.is(i+2, "matched")):
		f.part, f.arm = inArm, ""
	case v.is(i, "then") && merge && f.part == inArm:
		f.part = atThen
	default:
		return false
	}
	if f.cases > 0 { // none can stand inside of a CASE
		f.cases = 0
		f.verb, f.arm = "", "" // so that nothing behind it is confirmed
	}
	f.ended = false
	return true
}

// conflict reports whether the WHERE at i is that of an upsert's index.
func (v *verifier) conflict(i int) bool {
	open := v.opening(i - 1)
	return open > 0 && v.is(open-1, "conflict")
}

// arm reads the word behind THEN or DO.
func (v *verifier) arm(i int) bool {
	f := v.top()
	switch {
	case v.is(i, "update"):
		f.arm, f.part = "update", inTarget
	case v.is(i, "insert"):
		f.arm, f.part = "insert", inTarget
	case v.is(i, "delete"):
		f.arm, f.part = "delete", inRest
	case v.is(i, "do", "nothing"):
		f.part = inRest
		if v.is(i, "do") {
			f.part = atThen
		}
	default:
		return false
	}
	return true
}

// expression reads a word of an expression, and keeps count of its CASE.
func (v *verifier) expression(i int, mine bool) bool {
	f := v.top()
	switch {
	case v.is(i, "case") && !f.ended:
		f.cases++
		return true
	case v.is(i, "when", "then", "else") && (f.ended || v.is(i-1, "case")):
		f.ended = false
		return f.cases > 0 || f.part != inSet && f.part != inWhere
	case v.is(i, "end") && f.ended:
		if f.cases == 0 {
			return f.part != inSet && f.part != inWhere
		}
		f.cases--
		return true
	case v.is(i, "not", "distinct", "all"):
		return true
	case v.is(i, "and", "or", "in", "is", "like", "ilike", "glob", "regexp", "match", "between", "escape", "collate", "overlaps", "zone", "operator", "to") && f.ended:
		f.or = f.or || f.cases == 0 && !mine && v.is(i, "or")
		f.ended = false
		return true
	case v.is(i, "by") && v.is(i-1, "order", "group"), v.is(i, "symmetric", "asymmetric", "only", "lateral") && v.dialect == Postgres:
		return true
	}
	f.ended = true
	return true
}
