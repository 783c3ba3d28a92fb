package confirm

// walk goes through the tokens, and at each piece asks whether it belongs there.
func (c *Check) walk(pieces []Piece) bool {
	var inside *Piece // the piece that the token is part of
	depth := 0        // how many frames are open where it begins
	for c.next() {
		if inside != nil && c.lo >= inside.Hi {
			if !c.closes(inside, depth) {
				return false
			}
			inside = nil
		}
		if inside == nil && len(pieces) > 0 && c.hi > pieces[0].Lo {
			p := &pieces[0]
			if !c.begins(p) || !c.belongs(p) {
				return false
			}
			pieces = pieces[1:]
			if p.Kind.isWhole() {
				if !c.skip(p) {
					return false
				}
				continue
			}
			inside, depth = p, len(c.frames)
		}
		if inside != nil && c.hi > inside.Hi || !c.step(inside != nil) {
			return false
		}
		if inside == nil && (c.sign == ',' || c.sign == '(' || c.sign == '[') {
			c.members(pieces)
		}
	}
	if c.failed || inside != nil && !c.closes(inside, depth) {
		return false
	}
	return len(pieces) == 0 && len(c.frames) == 1
}

// next moves to the next token. Behind a dot or AS any word is a name.
func (c *Check) next() bool {
	if !c.scanner.next() {
		return false
	}
	if c.sign == signWord && !c.isLabel() {
		c.sign = c.dialect.keywords.sign(c.text[c.lo:c.hi])
	}
	return true
}

// members steps over the members of a list that are plain constants or placeholders, each
// with the comma behind it, which change nothing but what came last. It stops before the
// next piece.
func (c *Check) members(pieces []Piece) {
	f, stop := c.top(), len(c.text)
	if f.full || f.part == inTarget {
		return
	}
	if len(pieces) > 0 {
		stop = pieces[0].Lo
	}
	last := f.last
	for member := c.member(stop); member != 0; member = c.member(stop) {
		last = last<<16 | uint64(member)<<8 | ','
		f.ended, f.head = false, false
	}
	f.last = last
}

func (c *Check) isLabel() bool { return c.before(0) == '.' || c.before(0) == kwAs }

// following returns the sign of the token that comes next; 0 if there is none. A word is
// a keyword if it can be one.
func (c *Check) following() sign {
	ahead := c.scanner
	return ahead.keyword()
}

// follows reports whether the tokens to come are these.
func (c *Check) follows(signs ...sign) bool {
	ahead := c.scanner
	for _, s := range signs {
		if ahead.keyword() != s {
			return false
		}
	}
	return true
}

// keyword moves to the next token, and returns its sign: that of a keyword for a word
// which can be one; 0 if there is none that can be read.
func (s *scanner) keyword() sign {
	switch {
	case !s.next():
		return 0
	case s.sign == signWord:
		return s.dialect.keywords.sign(s.text[s.lo:s.hi])
	}
	return s.sign
}

// begins reports whether a piece begins with the current token, but for a blank.
func (c *Check) begins(p *Piece) bool {
	lo := p.Lo
	for lo < c.lo && c.text[lo] == ' ' {
		lo++
	}
	return lo == c.lo
}

// skip goes to the last token of a piece, which the current one begins, and reports
// whether the piece ends with it and has closed the brackets that it opened.
func (c *Check) skip(p *Piece) bool {
	depth, first, last, end, stop := 0, c.sign, c.sign, c.hi, p.Hi
	for c.text[stop-1] == ' ' { // the token behind it isn't to be seen twice
		stop--
	}
	for c.lo < stop {
		switch c.sign {
		case '(', '[':
			depth++
		case ')', ']':
			if depth--; depth < 0 {
				return false
			}
		}
		last, end = c.sign, c.hi
		if end >= stop || !c.scanner.next() {
			break
		}
	}
	c.hi = end
	c.record(signNumber)
	f := c.top()
	f.ended, f.head = last != ',' && p.Kind != BeforeRowValue, false
	f.with = f.with || p.Kind == WithItems && first == kwWith
	return depth == 0 && end <= p.Hi && !c.failed
}

// closes reports whether a piece that began in a number of frames may end before
// the current token, or at the end of the text.
func (c *Check) closes(p *Piece, frames int) bool {
	switch p.Kind {
	case BeforeValue:
		c.outside, c.between = frames, len(c.frames)
		return c.between > c.outside
	case BehindValue:
		c.between = 0
		last := c.sign == 0 || c.sign == ',' || c.sign == ')' || c.sign == ';'
		return len(c.frames) == c.outside && (last || c.endsList())
	}
	return len(c.frames) == frames
}
