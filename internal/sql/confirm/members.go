package confirm

import "math"

// What stands in lists is stepped over by loops of its own, which change what is known as the tokens one by one would:
// the members of any list, and the rows of an INSERT.

// members steps over the members of a list that are plain constants or placeholders, each
// with the comma behind it, which change nothing but what came last. It stops before the
// next piece.
func (c *Check) members(pieces []Piece) {
	f := c.top()
	if f.full || f.part == inTarget {
		return
	}
	last, stop := f.last, c.upTo(pieces)
	for member := c.member(stop); member != 0; member = c.member(stop) {
		last = last<<16 | uint64(member)<<8 | ','
		f.ended, f.head = false, false
	}
	f.last = last
}

// upTo returns where the first of the pieces begins, or the text ends.
func (c *Check) upTo(pieces []Piece) int {
	if len(pieces) > 0 {
		return pieces[0].Lo
	}
	return len(c.text)
}

// rows steps over rows to insert behind the comma of another one, each with the comma behind it: rows of plain
// constants or placeholders, with pieces at the end or none. It returns the other pieces.
func (c *Check) rows(pieces []Piece) []Piece {
	f := c.top()
	if f.part != inValues || f.full || c.between > 0 {
		return pieces
	}
	inserts := c.rowsOf(kwInsert) || c.rowsOf(kwReplace)
	for {
		lo, hi, inputs := c.lo, c.hi, c.inputs
		n := c.row(pieces, inserts)
		if n < 0 {
			c.sign, c.lo, c.hi, c.inputs, c.failed = ',', lo, hi, inputs, false
			return pieces
		}
		pieces = pieces[n:]
		f.last = f.last<<16 | ')'<<8 | ','
	}
}

// row moves behind a row and the comma behind it, and returns how many pieces the row has; or -1, and moves anywhere.
func (c *Check) row(pieces []Piece, inserts bool) (n int) {
	stop := c.upTo(pieces)
	if !c.byte('(') {
		return -1
	}
	for c.member(stop) != 0 {
	}
	if c.value(stop, ',') != 0 {
		if !inserts || c.hi != stop {
			return -1
		}
		for ; n < len(pieces) && pieces[n].Lo == c.hi; n++ {
			p := &pieces[n]
			if p.Kind != RowValue || !c.scanner.next() || !c.begins(p) {
				return -1
			}
			if _, ok := c.pieceEnd(p); !ok {
				return -1
			}
		}
	} else if c.value(stop, ')') == 0 {
		return -1
	}
	if !c.byte(')') || !c.byte(',') || c.hi > c.upTo(pieces[n:]) {
		return -1
	}
	c.sign, c.lo = ',', c.hi-1
	return n
}

// byte moves behind a byte if it comes next.
func (s *scanner) byte(want byte) bool {
	i := s.blanks()
	if s.at(i) != want {
		return false
	}
	s.hi = i + 1
	return true
}

// blanks returns where the blanks end that come next.
func (s *scanner) blanks() int {
	i := s.hi
	for i < len(s.text) && s.text[i] == ' ' {
		i++
	}
	return i
}

// member moves to the next comma, before stop, if there is nothing before it but a plain constant
// or a placeholder, and returns its sign; else it returns 0 and moves nowhere.
func (s *scanner) member(stop int) sign {
	member := s.value(stop-1, ',')
	if member != 0 {
		s.sign, s.lo, s.hi = ',', s.hi, s.hi+1
	}
	return member
}

// value moves behind the plain constant or placeholder that comes next and ends before a certain byte, at stop at
// last, and returns its sign; else it returns 0 and moves nowhere.
func (s *scanner) value(stop int, before byte) sign {
	i, text, d := s.blanks(), s.text, s.dialect
	if i >= stop {
		return 0
	}
	value, end, number := signNumber, i, 0
	switch c := text[i]; c {
	case '\'':
		value, end = signString, d.stringEnd(text, i+1, c)
	case d.Placeholder:
		value = signInput
		end, number = digits(text, i+1)
		if end == i+1 && d.DollarQuotes.Is() {
			return 0
		}
	default:
		end, _ = digits(text, i)
	}
	if end <= i || end > stop || s.at(end) != before {
		return 0
	}
	if value == signInput {
		s.inputs.see(end-i-1, number, s.numbers)
	}
	s.hi = end
	return value
}

// digits returns where the digits end that may stand at i, and their number: tooLarge if they are many.
func digits(s string, i int) (end, number int) {
	end = i
	for ; end < len(s) && isDigit(s[end]); end++ {
		number = 10*number + int(s[end]-'0')
	}
	if end-i > maxDigits {
		number = tooLarge
	}
	return end, number
}

// A number of more digits than maxDigits is tooLarge for any placeholder's.
const (
	maxDigits = 9
	tooLarge  = math.MaxInt32
)
