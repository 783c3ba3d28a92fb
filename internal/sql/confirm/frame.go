package confirm

// part is the part of a statement that a frame is in.
type part uint8

const (
	atStart  part = iota
	inTarget      // behind the verb, up to the next part
	inSet
	inTables // FROM, USING, ON
	inWhere
	inValues
	inAlias // behind the rows to insert
	inSelect
	inArm  // behind a MERGE's WHEN, up to THEN
	atThen // behind a MERGE's THEN or an upsert's DO
	inRest // RETURNING, ORDER BY and all else
)

// A frame is what the check knows of a bracket, or of the whole text.
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
	full   bool   // the SET list has the guard's assignment, or the row its value
	last   uint64 // the last eight tokens, one byte each; a bracket is its end

	operator bool // of OPERATOR(...), which no operand has ended with

	// MySQL's.
	tables    tables
	partition bool // of PARTITION (...)
	leading   bool // nothing but pieces stands behind SET
}

// writes reports whether the frame's statement, or an arm of it, is one of a verb.
func (f *frame) writes(verb sign) bool { return f.verb == verb || f.arm == verb }

// inWriteWhere reports whether the frame is in the WHERE of a write: not in that of
// a conflict's index.
func (f *frame) inWriteWhere() bool {
	return f.part == inWhere && (f.verb == kwUpdate || f.verb == kwDelete || f.verb == kwInsert || f.verb == kwReplace)
}

func (c *Check) top() *frame { return &c.frames[len(c.frames)-1] }

func (c *Check) parent() *frame { return &c.frames[len(c.frames)-2] }

// before returns the token n places before the current one, up to 7.
func (c *Check) before(n int) sign { return sign(c.top().last >> (8 * n)) }

// record notes the current token as one of the last.
func (c *Check) record(s sign) {
	f := c.top()
	f.last = f.last<<8 | uint64(s)
}

// step reads the current token; ofPiece says that it is part of a piece.
func (c *Check) step(ofPiece bool) bool {
	f := c.top()
	if f.full && !ofPiece && c.sign != ')' && c.sign != ';' {
		if !c.endsList() {
			return false
		}
		f.full = false
	}
	f.leading = false
	ok := true
	switch c.sign {
	case '(', '[':
		if len(c.frames) == maxNesting {
			return false
		}
		c.open()
	case ')', ']':
		return c.close(ofPiece)
	case ';':
		*f = frame{head: true}
	case ',':
		if f.part == inTarget || f.part == inTables {
			c.joinsTables(f)
		}
		f.ended, f.head = false, false
	case signName, signString, signNumber, signInput:
		c.operand()
	case '*': // all columns by itself, else it ends an operator such as ~*
		f.ended, f.head = !f.ended && c.columnsMayFollow(), false
	case '?': // a placeholder of other drivers, unless it ends @?
		f.ended, f.head = !f.ended && c.before(0) != '@', false
	default:
		if c.sign >= kwAll || c.sign == signWord {
			ok = c.word(ofPiece)
		} else {
			f.or = f.or || c.dialect.TwoModes.Is() && c.sign == '|' && f.cases == 0 && !ofPiece
			f.ended, f.head = false, false
		}
	}
	c.record(c.sign)
	return ok
}

// columnsMayFollow reports whether * may stand for all columns behind the token before.
func (c *Check) columnsMayFollow() bool {
	switch s := c.before(0); s {
	case signWord, signName, ',', '.', ')':
		return true
	default:
		return s >= kwAll
	}
}

// maxNesting is how deeply brackets may be nested: more than either database reads.
const maxNesting = 10_000

// open begins the frame of a bracket.
func (c *Check) open() {
	f := c.top()
	if f.part == inTarget && c.before(0) != kwPartition {
		c.joinsTables(f)
	}
	inner := frame{head: f.head, partition: c.before(0) == kwPartition, last: f.last,
		operator: c.before(0) == kwOperator && !f.ended}
	if f.part == inTarget && c.before(0) == kwOnly {
		inner.part, inner.verb = inTarget, f.verb // ONLY (name)
	}
	c.frames = append(c.frames, inner)
}

// close ends it. The value of a serial is assigned as a whole: it may not close what
// the guard has opened before it.
func (c *Check) close(ofPiece bool) bool {
	if !ofPiece && len(c.frames) == c.between {
		return false
	}
	f := c.top()
	if len(c.frames) == 1 || f.cases > 0 && f.part != inRest && f.part != inSelect && f.part != inTables {
		return false
	}
	inner := *f
	c.frames = c.frames[:len(c.frames)-1]
	f = c.top()
	f.ended = !inner.operator
	f.head = f.head && c.before(0) == kwExplain // EXPLAIN (...)
	if f.part == inTarget && !f.named && inner.part == inTarget {
		f.name, f.lo, f.hi, f.named = inner.name, inner.lo, inner.hi, inner.named
	}
	c.record(c.sign)
	return true
}

// endsList reports whether the current token may stand behind a complete SET list or row.
func (c *Check) endsList() bool {
	switch c.sign {
	case kwFrom, kwWhere, kwOrder, kwOn, kwWhen, kwGroup, kwHaving, kwTail, kwTailOrName:
		return true
	case kwAs: // the alias of an INSERT's row
		f := c.top()
		return f.part == inSet && f.verb == kwInsert && f.arm == 0
	case ',': // the first serial is added behind the mark
		return c.top().part != inSet
	}
	return false
}
