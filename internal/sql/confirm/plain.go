package confirm

import "strings"

// Most pieces have no comments, and no strings that a letter introduces. Whether such a one is whole can be told by
// its bytes: of all its tokens, only brackets and placeholders matter.

// A pieceByte says what a byte means in such a piece, outside of quotes.
type pieceByte uint8

const (
	unclearByte pieceByte = iota // the tokens have to be looked at
	otherByte                    // nothing
	quoteByte                    // of a string or name, up to where it comes again
	openByte                     // an opening bracket
	closeByte                    // a closing one
	inputByte                    // of a placeholder
	dashByte                     // of a comment, if another one or * follows
)

// pieceByteOf returns what a byte means; d.bytes are known.
func (d *Dialect) pieceByteOf(c byte) pieceByte {
	special := d.bytes[c] == specialByte
	switch {
	case c == d.Placeholder:
		return inputByte
	case c == '\'', c == '"', c == '`' && special:
		return quoteByte
	case c == '-', c == '/':
		return dashByte
	case special && c != '.' && !isDigit(c):
		return unclearByte
	case c == '(', c == '[':
		return openByte
	case c == ')', c == ']':
		return closeByte
	}
	return otherByte
}

// plainEnd moves to where a piece ends, at stop; its first token is the current one. whole says that it is such a
// piece and surely whole, and else it moves nowhere. It returns the sign of the last token, if that is a comma.
func (c *Check) plainEnd(stop int) (last sign, whole bool) {
	inputs, text, i, depth := c.inputs, c.text, c.hi, 0
	last = c.sign
	if last == '(' || last == '[' {
		depth = 1
	}
	// What stands at stop is no part of the last token, which ends there.
	ends := text[stop-1] > ' ' && (stop == len(text) || strings.IndexByte(" ,);", text[stop]) >= 0)
	whole = ends && last != ')' && last != ']'
	for whole && i < stop {
		b := text[i]
		i++
		switch c.dialect.pieces[b] {
		case unclearByte:
			whole = false
		case openByte:
			depth++
		case closeByte:
			depth--
			whole = depth >= 0
		case quoteByte:
			n := strings.IndexByte(text[i:stop], b)
			whole = n >= 0 && c.beginsQuote(i-1) && strings.IndexByte(text[i:i+n], '\\') < 0
			i += n + 1
		case dashByte:
			whole = i < len(text) && text[i] != b && text[i] != '*'
		case inputByte:
			end, number := digits(text, i)
			whole = b != '$' || end > i && !inName[text[i-2]]
			c.inputs.see(end-i, number, c.numbers)
			i = end
		}
	}
	if whole = whole && i == stop && depth == 0; !whole {
		c.inputs = inputs
		return 0, false
	}
	if stop > c.hi {
		last = sign(text[stop-1])
	}
	c.hi = stop
	return last, true
}

// beginsQuote reports whether the quote at i surely begins a string or name without escapes: no letter introduces it.
func (c *Check) beginsQuote(i int) bool {
	if !inName[c.text[i-1]] {
		return true
	}
	return i >= 2 && c.dialect.bytes[c.text[i-2]] == nameByte // a longer word
}
