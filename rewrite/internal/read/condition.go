package read

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Repeatable returns the AND-connected parts of a condition that may be evaluated twice: parts without a subquery that
// takes locks or may choose other rows the second time, and without a call of a possibly volatile function. If the
// operand of an AND is unclear, Repeatable returns no parts.
func (t *Text) Repeatable(s lex.Range) (parts []lex.Range) {
	lo, hi := int(s.Lo), int(s.Hi)
	if t.isPure(lo, hi) {
		return append(parts, s)
	}
	from, betweens, cases := lo, 0, 0
	add := func(to int) {
		if from < to && t.isPure(from, to) && !t.mayFail(from, to) {
			parts = append(parts, rangeOf(from, to))
		}
	}
	for i := lo; i < hi; i = t.Skip(i) {
		switch tok := &t.Tokens[i]; {
		case t.grammar.Lex.TwoModes.Is() && tok.Is('|') && t.Tokens[i+1].Is('|'), tok.Is(':') && t.Tokens[i+1].Is('='):
			return nil
		case tok.Kind != lex.Word || tok.Label:
		case t.isWord(tok, "case"):
			cases++
		case t.isWord(tok, "end"):
			if cases--; cases < 0 { // a column is called so
				return nil
			}
		case cases > 0:
		case t.isWord(tok, "or", "xor", "when", "then", "else"):
			return nil
		case t.isWord(tok, "between"):
			betweens++
		case t.isWord(tok, "and") && betweens > 0:
			betweens--
		case t.isWord(tok, "and"):
			add(i)
			from = i + 1
		}
	}
	add(hi)
	return parts
}

// mayFail reports whether a part of a condition may throw an error for some rows, as a subquery with two rows does.
// Such a part isn't repeated: alone it would be evaluated even for rows that the other parts exclude. In SQLite ->>
// fails for a column without JSON, and in PostgreSQL a cast fails for a text that is no number.
func (t *Text) mayFail(lo, hi int) bool {
	for i := lo; i < hi; i++ {
		i = t.pastPlain(i)
		tok, next := &t.Tokens[i], &t.Tokens[i+1]
		arrow := tok.Is('-') && next.Is('>') && next.Start == tok.End
		switch {
		case t.isWord(tok, "abs", "select"):
			return true
		case arrow:
			if t.grammar.ArrowMayFail.Is() {
				return true
			}
		case !t.grammar.MathMayFail.Is():
		case t.isWord(tok, "cast"):
			return true
		case tok.Is(':') && next.Is(':'):
			if k := t.Tokens[i-1].Kind; k != lex.Param && k != lex.Text && k != lex.Number {
				return true
			}
			i++
		case tok.Kind == lex.Punct && strings.IndexByte("+-*/%^", tok.Char) >= 0:
			sign := i > lo && t.Tokens[i-1].Kind == lex.Punct && !t.Tokens[i-1].Is(')')
			if !sign || next.Kind != lex.Number {
				return true
			}
		}
	}
	return false
}

// isPure reports whether an expression calls only a few well-known functions, and has no subquery with a clause that
// locks rows or chooses among equal rows.
func (t *Text) isPure(lo, hi int) bool {
	for i := lo; i < hi; i++ {
		i = t.pastPlain(i)
		tok := &t.Tokens[i]
		if tok.Kind == lex.Variable { // it may be assigned
			return false
		}
		if !isName(tok) {
			continue
		}
		if t.isWord(tok, "values", "table", "with", "raise", "limit", "offset", "fetch", "for", "lock", "distinct",
			"group", "having", "over", "window", "tablesample", "into", "nextval", "rownum") {
			return false
		}
		if i+1 < hi && t.Tokens[i+1].Is('(') && (i > lo && t.Tokens[i-1].Is('.') ||
			!t.isWord(tok, "and", "or", "not", "in", "any", "all", "some", "between", "is", "like", "ilike", "escape",
				"when", "then", "else", "row", "cast",
				"exists", "select", "where", "on", "max", "min", "count",
				"coalesce", "nullif", "lower", "upper", "length", "abs", "now", "date_add", "date_sub")) {
			return false
		}
	}
	return true
}
