package rewrite

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

// A frame is what the second look knows of a bracket, or of the whole text.
type frame struct {
	verb   sign // UPDATE, DELETE, INSERT, MERGE
	arm    sign // what a MERGE's arm does, or DO: UPDATE, DELETE, INSERT
	part   part
	head   bool   // nothing but EXPLAIN, WITH and brackets stands before
	with   bool   // it began with WITH
	named  bool   // name is complete but for an alias
	name   sign   // of its target, or the alias
	lo, hi int    // where that stands
	cases  int    // how many CASE are open
	ended  bool   // an operand has ended
	or     bool   // an OR stands in the condition, outside of CASE
	full   bool   // the SET list has its mark, or the row its value
	last   uint64 // the last eight tokens, one byte each; a bracket is its end

	operator bool // of OPERATOR(...), which no operand has ended with
}

// does reports whether the frame's statement, or an arm of it, is one of a verb.
func (f *frame) does(verb sign) bool { return f.verb == verb || f.arm == verb }

// inWriteWhere reports whether the frame is in the WHERE of a write: not in that of
// a conflict's index.
func (f *frame) inWriteWhere() bool {
	return f.part == inWhere && (f.verb == kwUpdate || f.verb == kwDelete || f.verb == kwInsert)
}

func (v *verifier) top() *frame { return &v.frames[len(v.frames)-1] }

func (v *verifier) parent() *frame { return &v.frames[len(v.frames)-2] }

// before returns the token n places before the current one, up to 7.
func (v *verifier) before(n int) sign { return sign(v.top().last >> (8 * n)) }

// follow notes the current token as one of the last.
func (v *verifier) follow(s sign) {
	f := v.top()
	f.last = f.last<<8 | uint64(s)
}

// step reads the current token; mine tells that it is of a piece.
func (v *verifier) step(mine bool) bool {
	f := v.top()
	if f.full && !mine && v.sign != ')' && v.sign != ';' {
		if !v.endsList() {
			return false
		}
		f.full = false
	}
	ok := true
	switch v.sign {
	case '(', '[':
		if len(v.frames) == maxNesting {
			return false
		}
		v.open()
	case ')', ']':
		return v.close(mine)
	case ';':
		*f = frame{head: true}
	case ',':
		f.ended, f.head = false, false
	case signName, signString, signNumber, signInput:
		v.operand()
	case '*': // all columns by itself, else it ends an operator such as ~*
		f.ended, f.head = !f.ended && v.columnsMayFollow(), false
	case '?': // a placeholder of other drivers, unless it ends @?
		f.ended, f.head = !f.ended && v.before(0) != '@', false
	default:
		if v.sign >= kwAll || v.sign == signWord {
			ok = v.word(mine)
		} else {
			f.ended, f.head = false, false
		}
	}
	v.follow(v.sign)
	return ok
}

// columnsMayFollow reports whether * may stand for all columns behind the token before.
func (v *verifier) columnsMayFollow() bool {
	switch s := v.before(0); s {
	case signWord, signName, ',', '.', ')':
		return true
	default:
		return s >= kwAll
	}
}

// maxNesting is how deeply brackets may be nested: more than either database reads.
const maxNesting = 10_000

// open begins the frame of a bracket.
func (v *verifier) open() {
	f := v.top()
	inner := frame{head: f.head, last: f.last, operator: v.before(0) == kwOperator && !f.ended}
	if f.part == inTarget && v.before(0) == kwOnly {
		inner.part, inner.verb = inTarget, f.verb // ONLY (name)
	}
	v.frames = append(v.frames, inner)
}

// close ends it. The value of a serial is assigned as a whole: it may not close what
// the guard has opened before it.
func (v *verifier) close(mine bool) bool {
	if !mine && len(v.frames) == v.between {
		return false
	}
	f := v.top()
	if len(v.frames) == 1 || f.cases > 0 && f.part != inRest && f.part != inSelect && f.part != inTables {
		return false
	}
	inner := *f
	v.frames = v.frames[:len(v.frames)-1]
	f = v.top()
	f.ended = !inner.operator
	f.head = f.head && v.before(0) == kwExplain // EXPLAIN (...)
	if f.part == inTarget && !f.named && inner.part == inTarget {
		f.name, f.lo, f.hi, f.named = inner.name, inner.lo, inner.hi, inner.named
	}
	v.follow(v.sign)
	return true
}

// endsList reports whether the current token may stand behind a complete SET list or row.
func (v *verifier) endsList() bool {
	switch v.sign {
	case kwFrom, kwWhere, kwOrder, kwOn, kwWhen, kwGroup, kwTail, kwPostgresTail:
		return true
	case ',': // the first serial is added behind the mark
		return v.top().part != inSet
	}
	return false
}

// operand reads a token that is a value or a name; in a target it may be its name.
func (v *verifier) operand() {
	f := v.top()
	other := v.before(0) == kwOr || v.before(0) == kwBy && v.before(1) == kwIndexed // OR ABORT, an index
	if f.part == inTarget && v.sign != signNumber && v.sign != signInput && !other &&
		(!f.named || v.isLabel() || v.dialect == Postgres) {
		f.name, f.lo, f.hi, f.named = v.sign, v.lo, v.hi, true
	}
	f.ended, f.head = true, false
}

// word reads a word: as what begins another part, where it can only be that.
func (v *verifier) word(mine bool) bool {
	f, s := v.top(), v.sign
	f.head = f.head && (s == kwWith || s == kwRecursive || s == kwExplain || s == kwAnalyze)
	begins := f.verb == 0 && f.part == atStart
	switch {
	case s == signWord && f.part != atThen:
		v.operand()
	case s == kwWith && begins: // or a name
		f.with, f.ended = true, true
	case s == kwSelect && begins:
		f.part, f.ended = inSelect, false
	case s == kwGroup && v.before(0) == kwWithin && v.follows('('), s == kwOn && v.before(0) == kwDistinct:
	case f.with && begins && (s == kwUsing || s == kwFrom || s == kwOn): // of CYCLE, or names
	case begins && v.beginsWrite(f):
		f.verb, f.part = s, inTarget
	case f.part == inTarget:
		return v.target(f)
	case f.part == atThen:
		return v.arm(f)
	case s == kwFrom && v.before(0) == kwDistinct && (v.before(1) == kwIs || v.before(1) == kwNot):
		f.ended = false
	case v.clause(f):
	default:
		return v.expression(f, mine)
	}
	return true
}

// beginsWrite reports whether the current word is a verb that begins a statement,
// which may stand behind WITH, and isn't the name of something.
func (v *verifier) beginsWrite(f *frame) bool {
	switch v.sign {
	case kwUpdate, kwDelete, kwInsert, kwMerge, kwReplace:
	default:
		return false
	}
	if v.follows('(') || v.follows(',') || v.follows(')') || v.follows(kwAs) {
		return false
	}
	switch v.before(0) {
	case 0, '(', ';', ')', kwExplain, kwAnalyze:
		return true
	}
	return f.with
}

// target reads a word behind a verb: up to SET, USING and the like it is a name.
func (v *verifier) target(f *frame) bool {
	switch v.sign {
	case kwSet:
		f.part, f.ended, f.cases = inSet, false, 0
		return f.does(kwUpdate) && f.named
	case kwAs:
		return true
	case kwUsing:
		f.part, f.ended = inTables, false
		return true
	case kwValues:
		f.part = inValues
		return true
	case kwSelect, kwWith:
		f.part, f.ended = inSelect, false
		return true
	}
	switch {
	case (v.sign == kwInto || v.sign == kwFrom || v.sign == kwOr) && !f.named:
	case v.sign == kwOnly && v.dialect == Postgres:
	case (v.sign == kwNot || v.sign == kwIndexed) && f.named && v.dialect == SQLite:
	case v.sign == kwBy && v.before(0) == kwIndexed:
	case v.sign == kwInsertOption && f.does(kwInsert) && f.named:
	case v.clause(f):
	default:
		v.operand()
	}
	return true
}

// clause reads a word that can only begin another part of the statement.
func (v *verifier) clause(f *frame) bool {
	p, ok := v.begun(f)
	if !ok {
		return false
	}
	if p == inArm {
		f.arm = 0
	}
	if f.cases > 0 { // none can stand inside of a CASE
		f.cases = 0
		f.verb, f.arm = 0, 0 // so that nothing behind it is confirmed
	}
	f.part, f.ended, f.or = p, false, false
	return true
}

// begun returns the part that the current word begins, if it begins one.
func (v *verifier) begun(f *frame) (p part, ok bool) {
	switch v.sign {
	case kwWhere:
		if f.verb == kwInsert && f.arm != kwUpdate && v.before(0) == ')' && v.before(1) == kwConflict {
			return inRest, true // of the conflict's index
		}
		return inWhere, true
	case kwFrom, kwUsing, kwJoin:
		return inTables, true
	case kwTail, kwOrder, kwGroup, kwInto:
		return inRest, true
	case kwPostgresTail:
		return inRest, v.dialect == Postgres
	case kwSelect:
		return inSelect, !f.ended
	case kwValues:
		return inValues, !f.ended && v.follows('(')
	case kwOn:
		if v.follows(kwConflict) || v.follows(kwConstraint) {
			return inRest, true
		}
		return inTables, true
	case kwDo:
		return atThen, f.verb == kwInsert && f.part == inRest && (v.follows(kwUpdate) || v.follows(kwNothing))
	case kwWhen:
		return inArm, f.verb == kwMerge && f.cases == 0 && (v.follows(kwMatched) || v.follows(kwNot, kwMatched))
	case kwThen:
		return atThen, f.verb == kwMerge && f.cases == 0 && f.part == inArm
	}
	return 0, false
}

// arm reads the word behind THEN or DO.
func (v *verifier) arm(f *frame) bool {
	switch v.sign {
	case kwUpdate, kwInsert:
		f.arm, f.part = v.sign, inTarget
	case kwDelete:
		f.arm, f.part = v.sign, inRest
	case kwNothing:
		f.part = inRest
	case kwDo:
	default:
		return false
	}
	return true
}

// expression reads a word of an expression, and keeps count of its CASE.
func (v *verifier) expression(f *frame, mine bool) bool {
	conditional := f.part == inSet || f.part == inWhere // where a CASE has to be complete
	switch {
	case v.sign == kwCase && !f.ended:
		f.cases++
		return true
	case (v.sign == kwWhen || v.sign == kwThen || v.sign == kwElse) && (f.ended || v.before(0) == kwCase):
		f.ended = false
		return f.cases > 0 || !conditional
	case v.sign == kwEnd && f.ended:
		if f.cases == 0 {
			return !conditional
		}
		f.cases--
		return true
	case v.sign == kwNot || v.sign == kwDistinct || v.sign == kwAll:
		return true
	case v.sign == kwZone && v.before(1) != kwAt: // of a type
	case (v.sign == kwAnd || v.sign == kwOr || v.sign == kwIs || v.sign == kwInfix || v.sign == kwOperator || v.sign == kwZone) && f.ended:
		f.or = f.or || f.cases == 0 && !mine && v.sign == kwOr
		f.ended = false
		return true
	case v.sign == kwBy && (v.before(0) == kwOrder || v.before(0) == kwGroup),
		(v.sign == kwPrefix || v.sign == kwOnly) && v.dialect == Postgres:
		return true
	}
	f.ended = true
	return true
}
