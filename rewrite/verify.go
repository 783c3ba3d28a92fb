package rewrite

import "sync"

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
	lo, hi int
}

// unconfirmed is why a statement is refused that the second look can't confirm.
const unconfirmed = "the guard can't be confirmed to stand where it belongs; write the statement more plainly, with names that are keywords in quotes"

// A verifier takes one second look, and goes through the text token by token.
type verifier struct {
	scanner
	pieces []piece
	frames []frame // the brackets that are open, the whole text first

	// Around a serial that the statement assigns stand two pieces: how many frames
	// there are outside of them, and between them; 0 elsewhere.
	outside, between int
}

var verifiers = sync.Pool{New: func() any { return new(verifier) }}

// maxFrames and maxPieces are what a verifier keeps room for when it is released.
const (
	maxFrames = 1 << 10
	maxPieces = 16 << 10
)

// confirmed reports whether the pieces of a rendered statement stand where they guard.
func confirmed(d Dialect, text string, pieces []piece) bool {
	v := verifier{pieces: pieces}
	return v.confirms(d, text)
}

// confirms is confirmed for the verifier's own pieces.
func (v *verifier) confirms(d Dialect, text string) bool {
	v.scanner = scanner{dialect: d, text: text}
	v.frames = append(v.frames[:0], frame{head: true})
	v.outside, v.between = 0, 0
	return v.walk(v.pieces)
}

// release keeps a verifier for the next look, without what it has looked at.
func (v *verifier) release() {
	if cap(v.frames) > maxFrames || cap(v.pieces) > maxPieces {
		return
	}
	v.text = ""
	clear(v.pieces)
	verifiers.Put(v)
}

// walk goes through the tokens, and at each piece asks whether it belongs there.
func (v *verifier) walk(pieces []piece) bool {
	var inside *piece // the one that the token is of
	depth := 0        // of the piece
	for v.next() {
		if inside != nil && v.lo >= inside.hi {
			if !v.closes(inside, depth) {
				return false
			}
			inside = nil
		}
		if inside == nil && len(pieces) > 0 && v.hi > pieces[0].lo {
			p := &pieces[0]
			if !v.begins(p) || !v.belongs(p) {
				return false
			}
			pieces = pieces[1:]
			if p.edit.isWhole() {
				if !v.over(p) {
					return false
				}
				continue
			}
			inside, depth = p, len(v.frames)
		}
		if inside != nil && v.hi > inside.hi || !v.step(inside != nil) {
			return false
		}
	}
	if v.failed || inside != nil && !v.closes(inside, depth) {
		return false
	}
	return len(pieces) == 0 && len(v.frames) == 1
}

// next moves to the next token. Behind a dot or AS any word is a name.
func (v *verifier) next() bool {
	if !v.scanner.next() {
		return false
	}
	if v.sign == signWord && !v.isLabel() {
		v.sign = keyword(v.text[v.lo:v.hi])
	}
	return true
}

func (v *verifier) isLabel() bool { return v.before(0) == '.' || v.before(0) == kwAs }

// follows reports whether the tokens to come are these.
func (v *verifier) follows(signs ...sign) bool {
	ahead := v.scanner
	for _, s := range signs {
		if !ahead.next() || ahead.sign != s && (ahead.sign != signWord || keyword(v.text[ahead.lo:ahead.hi]) != s) {
			return false
		}
	}
	return true
}

// begins reports whether a piece begins with the current token, but for a blank.
func (v *verifier) begins(p *piece) bool {
	lo := p.lo
	for lo < v.lo && v.text[lo] == ' ' {
		lo++
	}
	return lo == v.lo
}

// over goes to the last token of a piece, which the current one begins, and reports
// whether the piece ends with it and has closed the brackets that it opened.
func (v *verifier) over(p *piece) bool {
	depth, last, end := 0, v.sign, v.hi
	for v.lo < p.hi {
		switch v.sign {
		case '(', '[':
			depth++
		case ')', ']':
			if depth--; depth < 0 {
				return false
			}
		}
		last, end = v.sign, v.hi
		if end >= p.hi || !v.scanner.next() {
			break
		}
	}
	v.hi = end
	v.follow(signNumber)
	f := v.top()
	f.ended, f.head = last != ',', false
	f.with = f.with || p.edit.op == opStatements && p.edit.text != ""
	return depth == 0 && end <= p.hi && !v.failed
}

// closes reports whether a piece that began in a number of frames may end before
// the current token, or at the end of the text.
func (v *verifier) closes(p *piece, frames int) bool {
	switch p.edit.op {
	case opRaised:
		v.outside, v.between = frames, len(v.frames)
		return v.between > v.outside
	case opRaisedEnd:
		v.between = 0
		last := v.sign == 0 || v.sign == ',' || v.sign == ')' || v.sign == ';'
		return len(v.frames) == v.outside && (last || v.endsList())
	}
	return len(v.frames) == frames
}

// belongs reports whether a piece may begin with the current token.
func (v *verifier) belongs(p *piece) bool {
	f := v.top()
	switch p.edit.op {
	case opMark, opSerial:
		f.full = true
		return v.assigns(f, p) && f.ended && v.sign == ','
	case opRaised:
		f := v.valueOf()
		return f != nil && v.assigns(f, p)
	case opRaisedEnd:
		return len(v.frames) == v.between
	case opCheck, opTokens:
		return v.checks(f, p)
	case opLedger:
		return f.inWriteWhere() && f.cases == 0 && !f.or && (v.before(0) == kwWhere || v.before(0) == kwAnd)
	case opColumn:
		f.full = true
		return len(v.frames) > 1 && v.parent().does(kwInsert) && v.parent().part == inTarget
	case opValue:
		f.full = true
		row := len(v.frames) > 1 && v.parent().part == inValues
		return (row || f.part == inSelect) && v.inserts()
	case opStatements:
		return f.head
	case opAbort:
		return v.before(0) == kwUpdate || v.before(0) == kwInsert
	case opGone:
		return f.verb == kwInsert
	}
	return true
}

// assigns reports whether a piece may stand in a frame as it does in a SET list.
func (v *verifier) assigns(f *frame, p *piece) bool {
	return f.part == inSet && f.cases == 0 && v.isOwn(f, p)
}

// valueOf returns the frame in which the value is assigned that the current token
// begins: behind =, or in a row of values behind that. It may be nil.
func (v *verifier) valueOf() *frame {
	switch v.before(0) {
	case '=':
		return v.top()
	case '(', ',':
		if len(v.frames) == 1 {
			return nil
		}
		f := v.parent()
		if last := sign(f.last); last == '=' || last == kwRow && sign(f.last>>8) == '=' {
			return f
		}
	}
	return nil
}

// checks reports whether a condition begins with a piece that comes next: that of a
// frame's WHERE or arm. A user's own stands around it as CASE WHEN (...) THEN.
func (v *verifier) checks(f *frame, p *piece) bool {
	first := 0
	if v.before(0) == kwThen {
		if v.before(1) != ')' || v.before(2) != kwWhen || v.before(3) != kwCase {
			return false
		}
		first = 4
	}
	if !v.isOwn(f, p) {
		return false
	}
	if f.part == inArm {
		return v.before(first) == kwAnd && (v.before(first+1) == kwMatched || v.before(first+1) == kwMatchedBy)
	}
	return f.inWriteWhere() && v.before(first) == kwWhere
}

// inserts reports whether the rows of the current frame are those of an INSERT.
func (v *verifier) inserts() bool {
	for n := len(v.frames) - 1; n >= 0; n-- {
		f := &v.frames[n]
		if f.does(kwInsert) {
			return true
		}
		if f.verb != 0 {
			return false
		}
	}
	return false
}

// isOwn reports whether a piece is written for the target of a frame.
func (v *verifier) isOwn(f *frame, p *piece) bool {
	if !f.named {
		return false
	}
	s, qualifier := v.text[f.lo:f.hi], p.edit.text
	as := token{kind: word, start: int32(f.lo), end: int32(f.hi)}
	switch {
	case f.name == signName:
		as.kind = quoted
	case f.name == signString:
		as.kind = text
	case len(s) <= maxPostgresName:
		return equalFold(s, qualifier[1:len(qualifier)-1])
	}
	name, _ := normal(v.dialect, v.text, as)
	return quoteName(v.dialect, name) == qualifier
}
