package read

import "github.com/sqlfence/sqlfence/internal/sql/lex"

// until moves to the next of the words outside of brackets that ends a clause, or to t.stop, and returns the position.
// The databases reserve these words, so each word ends a clause unless it is a label (after a dot or AS), or
// [Text.isNoClause] reports true.
func (t *Text) until(words ...string) (at int) {
	cases := 0
	for ; t.i < t.stop; t.i = t.Skip(t.i) {
		switch tok := t.tok(); {
		case tok.Kind != lex.Word || tok.Label:
		case t.grammar.Merge.Is() && t.isWord(tok, "case"):
			cases++
		case t.grammar.Merge.Is() && t.isWord(tok, "end"):
			cases--
		case !t.isWord(tok, words...) || t.isNoClause(t.i):
		case cases > 0 && t.isWord(tok, "when", "then"):
		default:
			return t.i
		}
	}
	t.i = t.stop
	return t.i
}

// isNoClause reports whether the word at i, which usually ends a clause, is a name or part of an expression here.
func (t *Text) isNoClause(i int) bool {
	tok, next, third := &t.Tokens[i], &t.Tokens[i+1], &t.Tokens[min(i+2, len(t.Tokens)-1)]
	switch tok.Char {
	case 'd': // SQLite takes DO for a name, too
		updates := t.isWord(next, "update") && t.isWord(third, "set")
		return t.isWord(tok, "do") && !updates && !t.isWord(next, "nothing")
	case 'f':
		switch {
		case t.isWord(tok, "from"): // IS [NOT] DISTINCT FROM
			return t.follows(i, 1, "distinct") &&
				(t.follows(i, 2, "is") || t.follows(i, 2, "not") && t.follows(i, 3, "is"))
		case t.isWord(tok, "for"): // COLLATION FOR (...), and NEXT VALUE FOR name
			return t.follows(i, 1, "collation") && next.Is('(') ||
				t.follows(i, 1, "value") && t.follows(i, 2, "next", "previous")
		}
	case 'g': // WITHIN GROUP (ORDER BY ...)
		return t.isWord(tok, "group") && t.follows(i, 1, "within") && next.Is('(')
	case 'o':
		switch {
		case !t.isWord(tok, "on"):
		case t.grammar.OnDuplicate.Is():
			return !t.isWord(next, "duplicate") || !t.isWord(third, "key")
		case !t.isWord(next, "conflict"): // a join's, or that of DISTINCT ON
			return true
		default:
			return !t.followsConflict(i + 2)
		}
	case 'w':
		switch {
		case t.isWord(tok, "when"):
			return !t.isWord(next, "matched") && !(t.isWord(next, "not") && t.isWord(third, "matched"))
		case t.isWord(tok, "window"):
			return !(isName(next) && t.isWord(third, "as"))
		}
	}
	return t.isWord(tok, t.grammar.NameWords...) && (t.wantsOperand(i) || next.Is(',') || next.Kind == lex.End ||
		t.isWord(next, "from", "where", "on", "order", "limit", "group", "having", "union", "for", "into"))
}

// followsConflict reports whether the tokens from i on, after ON CONFLICT, complete the ON CONFLICT clause of an
// INSERT. Otherwise CONFLICT is a function or a column in the condition of a join, which no DO follows.
//
//	[(columns) [WHERE condition] | ON CONSTRAINT name] DO
func (t *Text) followsConflict(i int) bool {
	if t.isWord(&t.Tokens[i], "on") {
		return t.isWord(&t.Tokens[i+1], "constraint")
	}
	if t.Tokens[i].Is('(') {
		i = t.Skip(i)
		if t.isWord(&t.Tokens[i], "where") {
			for i < t.stop && (t.Tokens[i].Label || !t.isWord(&t.Tokens[i], "do", "on")) {
				i = t.Skip(i)
			}
		}
	}
	return t.isWord(&t.Tokens[i], "do")
}

// wantsOperand reports whether an operand must follow at i. An unreserved word there is a name.
func (t *Text) wantsOperand(i int) bool {
	if i == 0 {
		return true
	}
	switch before := &t.Tokens[i-1]; before.Kind {
	case lex.Punct:
		return !before.Is(')') && !before.Is(']') && !before.Is('}') && !(before.Is('*') && t.wantsOperand(i-1))
	case lex.Word:
		return !before.Label && t.isWord(before, beforeOperand...) && !t.follows(i, 2, "collate")
	}
	return false
}

// beforeOperand are the reserved words that an operand follows.
var beforeOperand = []string{"select", "distinct", "all", "where", "having", "on", "by", "and", "or", "xor", "not",
	"in", "is", "like", "rlike", "regexp", "between", "div", "mod", "binary", "interval", "collate", "case",
	"when", "then", "else", "set", "from", "join", "limit"}

// follows reports whether the token n places before i is one of the words, and no label.
func (t *Text) follows(i, n int, words ...string) bool {
	return i >= n && !t.Tokens[i-n].Label && t.isWord(&t.Tokens[i-n], words...)
}

func isName(tok *lex.Token) bool {
	return tok.Kind == lex.Word || tok.Kind == lex.Quoted || tok.Kind == lex.Text
}
