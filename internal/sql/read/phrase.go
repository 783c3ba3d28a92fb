package read

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// A phrase follows expressions, lists of them and the clauses around them, token
// by token and outside of brackets, and distinguishes keywords from names: many words are
// both. Which one a word is depends on whether an operand is wanted where it
// stands, or has ended there.
//
// Where a word could be either, doubtful is set.
type phrase struct {
	place    place
	cases    int  // how many CASE are open
	opened   bool // the token before is a CASE
	prefix   bool // the bracket that comes next is no operand
	doubtful bool
}

// place is where in an expression a phrase is.
type place uint8

const (
	wanted   place = iota // an operand has to come
	complete              // an operand has ended
	labelled              // behind an operand came a word that is no operator
)

// step reads token i of t, and reports whether it is a keyword. A bracket is one
// token with all that it holds.
func (p *phrase) step(t *Text, i int) (isKeyword bool) {
	tok, opened, prefixed := &t.Tokens[i], p.opened, p.prefix
	p.opened, p.prefix = false, false
	switch {
	case tok.Kind == lex.Punct:
		p.punct(t, i, prefixed)
	case tok.Kind == lex.Word:
		return p.word(t, i, opened)
	case p.place == wanted:
		p.place = complete
	}
	return false
}

func (p *phrase) punct(t *Text, i int, prefixed bool) {
	switch tok := &t.Tokens[i]; {
	case tok.Char == '(' || tok.Char == '[':
		if p.place == wanted && !prefixed {
			p.place = complete
		}
	case tok.Char == '*' && p.place == wanted && !(i > 0 && isOperator(&t.Tokens[i-1])): // all columns
		p.place = complete
	default:
		p.place = wanted
	}
}

func (p *phrase) word(t *Text, i int, opened bool) (isKeyword bool) {
	tok := &t.Tokens[i]
	switch {
	case tok.Label && t.Tokens[i-1].Is('.'):
		p.place = complete
		return false
	case tok.Label:
		p.place = labelled
		return false
	case i > 0 && t.Tokens[i-1].Kind == lex.Number && t.Tokens[i-1].End == tok.Start:
		p.doubtful = p.doubtful || !t.goesOn(i)
		return false
	}
	k := t.grammar.keyword(t.Src[tok.Start:tok.End])
	if k == nil || p.place == wanted && k.name {
		p.name(t, i)
		return false
	}
	switch k.role {
	case clause:
		return p.clause(t, i)
	case operator:
		p.place = wanted
		return true
	case postfix, prefix: // behind an operand NOT is a part of NOT LIKE and the like
		return true
	case head:
		if p.place != wanted {
			p.place = labelled
			return false
		}
		return true
	case opening:
		return p.begin(t)
	case between:
		return p.arm(k.word != "else", opened)
	}
	return p.end()
}

// goesOn reports whether the word i, right behind a number, is a part of it: 1e5, 1e-5, 0x1F or 1_000. MySQL's
// numbers have no such parts. Any other word, as in 4WHERE or 4e0WHERE, is one of its own to some servers, and
// an error for others.
func (t *Text) goesOn(i int) bool {
	if t.grammar.Lex.DigitNames.Is() {
		return false
	}
	number, tok := &t.Tokens[i-1], &t.Tokens[i]
	word := t.Src[tok.Start:tok.End]
	if t.Src[number.Start:number.End] == "0" && strings.IndexByte("xob", tok.Char) >= 0 {
		return len(word) > 1 && strings.Trim(word[1:], "0123456789abcdefABCDEF_") == ""
	}
	digits, exponent := word, ""
	if e := strings.IndexAny(word, "eE"); e >= 0 {
		digits, exponent = word[:e], word[e+1:]
		if next := &t.Tokens[i+1]; exponent == "" && !(next.Is('+') || next.Is('-')) {
			return false
		}
	}
	return (digits == "" || digits[0] == '_') && strings.Trim(digits, "0123456789_") == "" &&
		strings.Trim(exponent, "0123456789_") == ""
}

// begin reads a CASE. Behind an operand it is a label; what looks like one may be the
// end of an operator that isn't known.
func (p *phrase) begin(t *Text) (isKeyword bool) {
	if p.place != wanted {
		p.doubtful = p.doubtful || p.place == labelled || !t.grammar.CaseLabel.Is() || p.cases > 0
		p.place = labelled
		return false
	}
	p.cases++
	p.opened = true
	return true
}

// arm reads WHEN and THEN, or ELSE. Only the first two can stand outside of CASE.
func (p *phrase) arm(outside, opened bool) (isKeyword bool) {
	if p.place == wanted && !opened {
		p.doubtful = true
	}
	if p.cases == 0 && !outside {
		p.place = labelled
		return false
	}
	p.place = wanted
	return true
}

// end reads an END. Behind an operand and outside of CASE it is a label.
func (p *phrase) end() (isKeyword bool) {
	switch {
	case p.place == wanted:
		p.doubtful = true
	case p.cases == 0:
		p.place = labelled
		return false
	}
	p.cases--
	p.place = complete
	return true
}

// name reads a word that is no keyword here, or one that only takes part in the
// name of an operator.
func (p *phrase) name(t *Text, i int) {
	tok := &t.Tokens[i]
	switch {
	case p.place == wanted && t.isWord(tok, "by") && t.follows(i, 1, "group", "order"):
	case p.place == wanted:
		p.place = complete
	case t.grammar.OperatorWords.Is() && t.isWord(tok, "operator") && t.Tokens[i+1].Is('('):
		p.place, p.prefix = wanted, true
	case t.grammar.OperatorWords.Is() && t.isWord(tok, "zone") && t.follows(i, 1, "time") && t.follows(i, 2, "at"):
		p.place = wanted
	default:
		p.place = labelled
	}
}

func (p *phrase) clause(t *Text, i int) (isKeyword bool) {
	tok, next := &t.Tokens[i], &t.Tokens[i+1]
	switch {
	case t.isWord(tok, "from") && t.follows(i, 1, "distinct") &&
		(t.follows(i, 2, "is") || t.follows(i, 2, "not") && t.follows(i, 3, "is")):
		return false
	case t.isWord(tok, "on") && t.follows(i, 1, "distinct") && next.Is('('): // DISTINCT ON (...)
		p.prefix = true
		return false
	case t.isWord(tok, "group") && t.follows(i, 1, "within") && next.Is('('): // WITHIN GROUP (ORDER BY ...)
		return false
	case t.grammar.OperatorWords.Is() && t.isWord(tok, "with") && t.isWord(next, "time", "unique"):
		return false
	case t.isWord(tok, "for") && t.follows(i, 1, "collation") && next.Is('('): // COLLATION FOR (...)
		p.place = complete
		return false
	case t.grammar.WindowLooksOn.Is() && t.isWord(tok, "window") &&
		!(isName(next) && t.isWord(&t.Tokens[min(i+2, len(t.Tokens)-1)], "as")):
		p.place = labelled
		return false
	case p.cases > 0: // none can stand inside of a CASE
		p.doubtful = true
	}
	p.place = wanted
	return true
}

// follows reports whether the token n places before i is one of the words, and no
// label.
func (t *Text) follows(i, n int, words ...string) bool {
	return i >= n && !t.Tokens[i-n].Label && t.isWord(&t.Tokens[i-n], words...)
}

// isOperator reports whether tok is an operator, or a part of one such as ~*.
func isOperator(tok *lex.Token) bool {
	return tok.Kind == lex.Punct && strings.IndexByte(",.()[];", tok.Char) < 0
}

func isName(tok *lex.Token) bool {
	return tok.Kind == lex.Word || tok.Kind == lex.Quoted || tok.Kind == lex.Text
}
