package confirm

import "strings"

// dashes reports whether the -- at i are a comment: before a blank or a control
// character, where they have to be.
func (d *Dialect) dashes(s string, i int) bool {
	return !d.HashComments.Is() || i+2 >= len(s) || s[i+2] <= ' ' || s[i+2] == 0x7F
}

// isCode reports whether a comment that begins at i may be code to some servers, or a hint
// that ends elsewhere.
func (d *Dialect) isCode(s string, i int) bool {
	if !d.TwoModes.Is() {
		return false
	}
	s = s[i+len("/*"):]
	if end := strings.Index(s, "*/"); end >= 0 {
		s = s[:end]
	}
	return strings.HasPrefix(s, "!") || len(s) > 1 && (s[0]|0x20 == 'm' || s[0]|0x20 == 't') && s[1] == '!' ||
		strings.HasPrefix(s, "+") && strings.ContainsAny(s, "'\"`")
}

// stringEnd is quoteEnd for a string, which may have escapes by a setting: -1 if its end
// depends on that.
func (d *Dialect) stringEnd(s string, i int, quote byte) int {
	end := quoteEnd(s, i, quote, false)
	if d.TwoModes.Is() && end != quoteEnd(s, i, quote, true) {
		return -1
	}
	return end
}

// numberOrName reads what begins with a digit: a number, or a name such as 1books.
func (s *scanner) numberOrName() {
	i, text := s.lo, s.text
	for i < len(text) && inName[text[i]] {
		i++
	}
	word := text[s.lo:i]
	digits := strings.TrimLeft(word, "0123456789")
	switch {
	case digits == "" && s.at(i) == '.':
		for i++; isDigit(s.at(i)); i++ {
		}
		s.sign, s.hi = signNumber, i
	case digits == "" || isExponent(digits) || isBase(word):
		s.sign, s.hi = signNumber, i
	default:
		s.sign, s.hi = signWord, i
	}
}

// isExponent reports whether s is e and digits.
func isExponent(s string) bool {
	return s[0]|0x20 == 'e' && len(s) > 1 && strings.Trim(s[1:], "0123456789") == ""
}

// isBase reports whether s is 0x or 0b and digits.
func isBase(s string) bool {
	if len(s) < 3 || s[0] != '0' {
		return false
	}
	return s[1] == 'b' && strings.Trim(s[2:], "01") == "" ||
		s[1] == 'x' && strings.Trim(s[2:], "0123456789abcdefABCDEF") == ""
}

// mysqlWord reads a word that means something in a statement of MySQL only; ok is false
// for others.
func (c *Check) mysqlWord(f *frame) (ok bool) {
	behind := f.part == inTarget && (f.named || f.tables.joined) || f.part == inTables
	switch {
	case !c.dialect.Joins.Is():
		return false
	case (c.sign == kwModifier || c.sign == kwQuick) && f.part == inTarget && !f.named,
		c.sign == kwPartition && f.part == inTarget:
	case c.sign == kwSet && behind && (f.verb == kwUpdate || f.verb == kwInsert || f.verb == kwReplace):
		f.part, f.ended, f.cases = inSet, false, 0
		f.tables.hi, f.leading = c.lo, true
	case (c.sign == kwIndexHint || c.sign == kwModifier) && behind:
		f.part = inTables
	case c.inIndexHint(f):
	case c.sign == kwUpdate && f.verb == kwInsert && c.before(0) == kwKey && c.before(1) == kwDuplicate &&
		c.before(2) == kwOn:
		f.arm, f.part, f.ended, f.cases = kwUpdate, inSet, false, 0
		f.leading = true
	case c.sign == kwAs && f.verb == kwInsert && (f.part == inValues || f.part == inSet && f.arm == 0):
		f.part = inAlias
	default:
		return false
	}
	return true
}

// inIndexHint reports whether the current token says what an index hint is for.
//
//	{USE | FORCE | IGNORE} INDEX FOR {JOIN | ORDER BY | GROUP BY} (...)
func (c *Check) inIndexHint(f *frame) bool {
	if c.sign == kwTail {
		return f.part == inTables && c.before(1) == kwIndexHint
	}
	return f.part == inTables && c.before(0) == kwTail && c.before(2) == kwIndexHint &&
		(c.sign == kwJoin || c.sign == kwOrder || c.sign == kwGroup)
}

// filtersRows reports whether the current token begins the WHERE or HAVING of the query of an INSERT, which may
// stand in a bracket.
func (c *Check) filtersRows(f *frame) bool {
	if !c.dialect.Joins.Is() || f.cases > 0 {
		return false
	}
	into := f
	if f.verb == 0 && len(c.frames) > 1 && !f.partition {
		if into = c.parent(); into.part != inTarget || !into.named {
			return false
		}
	}
	inserts := into.arm == 0 && (into.verb == kwInsert || into.verb == kwReplace)
	return inserts && (f.part == inWhere && c.before(0) == kwWhere || f.part == inRest && c.before(0) == kwHaving)
}

// joinsTables notes that the tables of a write are several.
func (c *Check) joinsTables(f *frame) {
	if c.dialect.Joins.Is() && (f.verb == kwUpdate || f.verb == kwDelete) {
		f.tables.joined = true
	}
}

// A tables says where the tables of an UPDATE or DELETE stand in the text.
type tables struct {
	lo, hi int
	joined bool
}

// isOneOf reports whether a piece is written for one of several tables.
func (c *Check) isOneOf(f *frame, p *Piece) bool {
	s := scanner{dialect: c.dialect, text: c.text[:f.tables.hi], hi: f.tables.lo}
	for s.next() {
		if (s.sign == signWord || s.sign == signName) && c.dialect.requote(s.text[s.lo:s.hi], s.sign) == p.Target {
			return true
		}
	}
	return false
}
