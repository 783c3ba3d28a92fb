package confirm

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// belongs reports whether a piece may begin with the current token.
func (c *Check) belongs(p *Piece) bool {
	f := c.top()
	switch p.Kind {
	case Assignment:
		f.full = true
		return c.assigns(f, p) && f.ended && c.sign == ','
	case LeadingAssignment:
		return f.leading && c.assigns(f, p) && endsWithComma(c.text[p.Lo:p.Hi])
	case BeforeValue:
		f := c.valueOf()
		return f != nil && c.assigns(f, p)
	case BehindValue:
		return len(c.frames) == c.between
	case Condition:
		return c.checks(f, p)
	case AndCondition:
		return c.filtersRows(f) || f.cases == 0 && c.joinsArm(f, 0) ||
			f.inWriteWhere() && f.cases == 0 && !f.or && (c.before(0) == kwWhere || c.before(0) == kwAnd)
	case Column:
		f.full = true
		return len(c.frames) > 1 && (c.parent().writes(kwInsert) || c.parent().verb == kwReplace) && !f.partition &&
			(c.parent().part == inTarget || c.parent().part == inAlias)
	case RowValue:
		f.full = true
		row := len(c.frames) > 1 && c.parent().part == inValues
		return (row || f.part == inSelect) && c.rowsOf(kwInsert) || row && c.rowsOf(kwReplace)
	case BeforeRowValue:
		if !c.beginsValue(f) && !c.comparesColumn(f) {
			return false
		}
		f.cases++
		return true
	case BehindRowValue:
		f.cases--
		return f.ended && f.cases == 0 && (c.holdsValue(f) || c.filters(f))
	case WithItems:
		return f.head
	case OrAbort:
		return c.before(0) == kwUpdate || c.before(0) == kwInsert
	case Returning:
		return f.verb == kwInsert
	case Tail:
		return f.verb == kwInsert && f.arm == 0 && f.cases == 0 && f.ended && c.sign == kwTail
	}
	return false
}

// assigns reports whether a piece may stand in a frame as it does in a SET list.
func (c *Check) assigns(f *frame, p *Piece) bool {
	return f.part == inSet && f.cases == 0 && c.isOwn(f, p)
}

// endsWithComma reports whether the last token of a piece is a comma.
func endsWithComma(piece string) bool { return strings.HasSuffix(strings.TrimRight(piece, " "), ",") }

// valueOf returns the frame in which the value is assigned that the current token
// begins: behind =, or in a row of values behind that. It may be nil.
func (c *Check) valueOf() *frame {
	switch c.before(0) {
	case '=':
		return c.top()
	case '(', ',':
		if len(c.frames) == 1 {
			return nil
		}
		f := c.parent()
		if last := sign(f.last); last == '=' || last == kwRow && sign(f.last>>8) == '=' {
			return f
		}
	}
	return nil
}

// checks reports whether a condition begins with a piece that comes next: that of a
// frame's WHERE or arm. A user's own stands around it as CASE WHEN (...) THEN, and may stand
// before that.
func (c *Check) checks(f *frame, p *Piece) bool {
	first := 0
	if c.before(0) == kwThen {
		first = 4
		if c.before(2) == kwExists { // of joined tables
			first = 5
		}
		if c.before(1) != ')' || c.before(first-2) != kwWhen || c.before(first-1) != kwCase {
			return false
		}
	}
	if !c.isOwn(f, p) {
		return false
	}
	if f.part == inArm {
		if c.before(first) == kwAnd && c.before(first+1) == signNumber { // behind an AndCondition
			first += 2
		}
		return c.joinsArm(f, first)
	}
	if c.before(first) == kwAnd && c.before(first+1) == signNumber { // behind an AndCondition
		first += 2
	}
	if c.dialect.Conditions.Is() && c.before(first) == kwAnd && c.before(first+1) == ')' {
		first += 2
	}
	return f.inWriteWhere() && c.before(first) == kwWhere
}

// joinsArm reports whether the first condition of a MERGE's arm begins with the current token, or
// with what stands some tokens before it.
func (c *Check) joinsArm(f *frame, before int) bool {
	return f.part == inArm && c.before(before) == kwAnd &&
		(c.before(before+1) == kwMatched || c.before(before+1) == kwMatchedBy)
}

// comparesColumn reports whether the current token begins what a column is compared with in the
// WHERE of a write.
func (c *Check) comparesColumn(f *frame) bool {
	return c.filters(f) && f.cases == 0 && c.before(0) == '='
}

// filters reports whether a frame is the WHERE of a write, or a bracket in it.
func (c *Check) filters(f *frame) bool {
	return f.inWriteWhere() || f.verb == 0 && len(c.frames) > 1 && c.parent().inWriteWhere()
}

// beginsValue reports whether the current token begins a value of a row to insert.
func (c *Check) beginsValue(f *frame) bool {
	last := c.before(0)
	if f.cases > 0 || !c.holdsValue(f) {
		return false
	}
	if f.part == inSet {
		return last == '='
	}
	return last == '(' || last == ','
}

// holdsValue reports whether the values of a frame are those of a row to insert.
func (c *Check) holdsValue(f *frame) bool {
	if f.part == inSet {
		return (f.verb == kwInsert || f.verb == kwReplace) && f.arm == 0
	}
	return len(c.frames) > 1 && c.parent().part == inValues && (c.rowsOf(kwInsert) || c.rowsOf(kwReplace))
}

// rowsOf reports whether the rows of the current frame are those of an INSERT, or a REPLACE.
func (c *Check) rowsOf(verb sign) bool {
	for n := len(c.frames) - 1; n >= 0; n-- {
		f := &c.frames[n]
		if f.writes(verb) {
			return true
		}
		if f.verb != 0 {
			return false
		}
	}
	return false
}

// isOwn reports whether a piece is written for the table that a frame writes to.
func (c *Check) isOwn(f *frame, p *Piece) bool {
	if f.tables.joined {
		return c.isOneOf(f, p)
	}
	if !f.named || len(p.Target) < len(`""`) {
		return false
	}
	s := c.text[f.lo:f.hi]
	if f.name != signName && f.name != signString && len(s) <= maxPlain {
		return isFolded(s, p.Target[1:len(p.Target)-1])
	}
	return c.dialect.requote(s, f.name) == p.Target
}

// maxPlain is the longest unquoted name that is its letters in lower case. PostgreSQL cuts a longer
// one.
const maxPlain = 63

// requote writes a name that stands in a statement as a [Piece.Target].
func (d *Dialect) requote(s string, as sign) string {
	t := lex.Token{Kind: lex.Word, End: int32(len(s))}
	switch as {
	case signName:
		t.Kind = lex.Quoted
	case signString:
		t.Kind = lex.Text
	}
	name, _ := d.Names.Name(s, &t)
	return d.Names.Quote(name)
}
