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
			pieces = c.rows(pieces)
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
	first := c.sign
	last, ok := c.pieceEnd(p)
	c.record(signNumber)
	f := c.top()
	f.ended, f.head = last != ',' && p.Kind != BeforeRowValue, false
	f.with = f.with || p.Kind == WithItems && first == kwWith
	return ok
}

// pieceEnd does what skip says, and returns the sign of the last token.
func (c *Check) pieceEnd(p *Piece) (last sign, ok bool) {
	stop := p.Hi
	for c.text[stop-1] == ' ' { // the token behind it isn't to be seen twice
		stop--
	}
	if last, ok = c.plainEnd(stop); ok {
		return last, true
	}
	return c.tokensEnd(p, stop)
}

// tokensEnd is pieceEnd token by token, up to stop, the end of the piece but for blanks.
func (c *Check) tokensEnd(p *Piece, stop int) (last sign, ok bool) {
	depth, end := 0, c.hi
	last = c.sign
	for c.lo < stop {
		switch c.sign {
		case '(', '[':
			depth++
		case ')', ']':
			if depth--; depth < 0 {
				return last, false
			}
		}
		last, end = c.sign, c.hi
		if end >= stop || !c.scanner.next() {
			break
		}
	}
	c.hi = end
	return last, depth == 0 && end <= p.Hi && !c.failed
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
