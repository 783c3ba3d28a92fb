package render

import (
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// A fragment is the text that an edit has added: the bytes from lo to hi of the rendered text.
type fragment struct {
	lo, hi int32
	at     int32 // the position of the edit
	op     Op
}

// intact reports whether a rendered text still has all tokens of the parsed statement, with only whole fragments of the
// guard between the tokens. No token grows together with a fragment, each bracket closes the same bracket as before,
// and each placeholder stands for the same argument as before. Only VALUES, DEFAULT and the brackets of a row may stand
// in comments of the guard. The statement's bytes are copied, so only the fragments are split into tokens.
func (w *writer) intact(read *read.Text, text string) bool {
	c := check{writer: w, read: read, tokens: read.Tokens, text: text,
		opened: w.opened[:0], inner: w.inner[:0], escapes: w.Escapes}
	w.sent = w.sent[:0]
	if w.NeedsSCSOn {
		c.escapes = lex.EscapesNone | lex.AnyEncoding
	}
	if !w.Counts {
		c.highest = w.Plan.Inputs
	}
	ok := true
	for i := 0; ok && i < len(w.fragments); {
		first := i
		for i++; i < len(w.fragments) && w.fragments[i].at == w.fragments[first].at; i++ {
		}
		ok = c.fragments(w.fragments[first:i], w.fragments[i:])
	}
	w.opened, w.inner = c.opened, c.inner
	ok = ok && c.moveTo(int32(len(w.Src))) && c.passes(c.placeholders) && (!w.Counts || c.placeholders == w.Plan.Inputs)
	counted := !w.Plan.Params || c.highest == w.Plan.Inputs+len(w.numbers.added)
	return ok && counted && len(c.opened) == 0
}

// A check goes through the fragments of a rendered text, and compares the text with the parsed statement.
type check struct {
	*writer
	read    *read.Text
	tokens  []lex.Token // the statement's tokens
	text    string
	escapes lex.Escapes
	scanned string // the fragment with the tokens sent

	next  int   // index of the statement's first token after the fragments that were checked so far
	inner []int // indexes of the statement's brackets that are open at next

	// opened has an entry for each open bracket of the fragments: the index of the statement's bracket around it, or
	// -1.
	opened []int

	// placeholders is the number of the statement's last placeholder before the token at index next, inputs that of the
	// last placeholder that the method passes has compared, and highest the highest number in the rendered text so far.
	placeholders, inputs, highest int
}

// growsTogether reports whether the fragment at an offset would change the token that ends there: both would be read as
// one token, or in MySQL as a comment, which two minus signs begin if a blank follows.
func (c *check) growsTogether(at, lo int32) bool {
	return joins(c.Src[at-1], c.text[lo]) || strings.HasSuffix(c.Src[:at], "--")
}

// fragments checks the fragments in here, which have the same offset. behind holds the following fragments.
func (c *check) fragments(here, behind []fragment) bool {
	lo, hi, at := here[0].lo, here[len(here)-1].hi, here[0].at
	if lo == hi {
		return true
	}
	part, covers := c.text[lo:hi], false
	if c.Comments {
		part = strings.TrimPrefix(part, "*/")
		part, covers = strings.CutSuffix(part, "/*")
	}
	n := len(part)
	if !c.moveTo(at) || covers && !c.covers(at, behind) || c.followsToken(at) && c.growsTogether(at, lo) ||
		!covers && n > 0 && int(at) < len(c.Src) && joins(part[n-1], c.Src[at]) {
		return false
	}
	for i := range here {
		if f := &here[i]; f.op == OpAssign && f.lo < f.hi && !c.isInSet() {
			return false
		}
	}
	found, err := c.scan(part)
	if err != nil {
		return err.Kind == lex.Ambiguous // then it isn't rendered
	}
	end := int32(0)
	if n := len(found) - 2; n >= 0 {
		end = found[n].End
	}
	if int(end) != len(strings.TrimRight(part, " ")) { // a comment at the end might continue
		return false
	}
	return c.brackets(found) && c.arguments(part, found)
}

// scan splits a fragment into tokens. The rows of an INSERT mostly have equal fragments, which are scanned once.
func (c *check) scan(part string) (found []lex.Token, err *lex.Error) {
	if part != c.scanned || len(c.sent) == 0 {
		if found, err = lex.ScanPart(c.Dialect.Grammar.Lex, part, c.escapes, c.sent[:0]); err != nil {
			c.sent, c.scanned = c.sent[:0], "" // their memory was overwritten
			return nil, err
		}
		c.sent, c.scanned = found, part
	}
	return c.sent, nil
}

// followsToken reports whether a token of the statement ends at an offset, rather than a blank or a comment.
func (c *check) followsToken(at int32) bool { return c.next > 0 && c.tokens[c.next-1].End == at }

// moveTo moves to the first token that begins at or after an offset, and reports whether no token spans the offset.
func (c *check) moveTo(at int32) bool {
	for c.tokens[c.next].Kind != lex.End && c.tokens[c.next].Start < at {
		switch tok := &c.tokens[c.next]; {
		case tok.Is('(') || tok.Is('['):
			if c.tokens[tok.Mate].End > at {
				c.inner = append(c.inner, c.next)
			} else {
				c.skip(tok.Mate)
			}
		case tok.Is(')') || tok.Is(']'):
			c.inner = c.inner[:len(c.inner)-1]
		case tok.Kind == lex.Param:
			c.placeholders = int(tok.Mate)
		}
		c.next++
	}
	return c.next == 0 || c.tokens[c.next-1].End <= at
}

// skip moves to the bracket that closes the bracket at next, and notes the last placeholder between the two.
func (c *check) skip(mate int32) {
	for i := int(mate) - 1; c.Counts && i > c.next; i-- {
		if tok := &c.tokens[i]; tok.Kind == lex.Param {
			c.placeholders = int(tok.Mate)
			break
		}
	}
	c.next = int(mate)
}

// joins reports whether two bytes side by side may belong to one token, or begin a comment.
func joins(a, b byte) bool {
	name := func(c byte) bool { return lex.IsNamePart(c) || c == '.' }
	sign := func(c byte) bool { return strings.IndexByte("+-*/<>=~!@#%^&|:$\\", c) >= 0 }
	switch {
	case sign(a) && sign(b):
		return true
	case name(b): // also of a placeholder
		return name(a) || a == '?' && lex.IsDigit(b) || strings.IndexByte("$:@#\\", a) >= 0
	case b == '$':
		return name(a)
	case b == '\'' || b == '"' || b == '`': // a letter before '...' and U& say how it is read
		return a == b || a == '&' || b == '\'' && name(a)
	}
	return false
}

// covers reports whether the statement has only words and brackets from an offset to the end of the guard's comment.
func (c *check) covers(at int32, behind []fragment) bool {
	if len(behind) == 0 || !strings.HasPrefix(c.text[behind[0].lo:behind[0].hi], "*/") {
		return false
	}
	for i := c.next; c.tokens[i].Kind != lex.End && c.tokens[i].Start < behind[0].at; i++ {
		if tok := &c.tokens[i]; tok.Kind != lex.Word && !tok.Is('(') && !tok.Is(')') {
			return false
		}
	}
	return strings.TrimSpace(c.Src[at:c.tokens[c.next].Start]) == ""
}

// brackets reports whether fragments opened each bracket that one closes, inside the same bracket of the statement.
func (c *check) brackets(found []lex.Token) bool {
	within := -1
	if n := len(c.inner); n > 0 {
		within = c.inner[n-1]
	}
	for i := range found {
		switch tok := &found[i]; {
		case tok.Is('(') || tok.Is('['):
			c.opened = append(c.opened, within)
		case tok.Is(')') || tok.Is(']'):
			n := len(c.opened) - 1
			if n < 0 || c.opened[n] != within {
				return false
			}
			c.opened = c.opened[:n]
		}
	}
	return true
}

// passes compares the statement's placeholders up to the one with the number inputs, and reports whether each stands
// for the same argument as before.
func (c *check) passes(inputs int) bool {
	if !c.Counts || inputs == c.inputs {
		return true
	}
	ok := !c.Plan.Params || c.numbers.own(c.inputs+1) == c.highest+1
	c.highest += inputs - c.inputs
	c.inputs = inputs
	return ok
}

// arguments counts the placeholders of fragments, continuing after the statement's placeholders seen so far.
func (c *check) arguments(part string, found []lex.Token) bool {
	if !c.passes(c.placeholders) {
		return false
	}
	for i := range found {
		tok := &found[i]
		switch {
		case tok.Kind != lex.Param || !c.Plan.Params: // else it may have a name
		case tok.End-tok.Start == 1:
			c.highest++
		default:
			n, err := strconv.Atoi(part[tok.Start+1 : tok.End])
			if err != nil {
				return false
			}
			c.highest = max(c.highest, n)
		}
	}
	return true
}

// isInSet reports whether a SET list continues before the next token. An assignment in the list of RETURNING or ORDER
// BY would be a condition, which stores nothing.
func (c *check) isInSet() bool {
	for i := int32(c.next) - 1; i >= 0; i-- {
		tok := &c.tokens[i]
		switch {
		case tok.Is(')') || tok.Is(']'):
			i = tok.Mate
		case tok.Is('(') || tok.Is('[') || tok.Is(';'):
			return false
		case tok.Label:
		case c.read.Word(i, "set") || c.read.Word(i, "update") && i > 0 && c.read.Word(i-1, "key"):
			return true
		case c.read.Word(i, "from"):
			if i == 0 || !c.read.Word(i-1, "distinct") {
				return false
			}
		case c.read.Word(i, "where", "returning", "order", "limit"):
			return false
		}
	}
	return false
}
