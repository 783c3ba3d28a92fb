package read

import "github.com/sqlfence/sqlfence/internal/sql/lex"

// claim records that the verb at a token is a part of a parsed write.
func (t walker) claim(verb int) {
	if n := len(t.verbs); n == 0 || t.verbs[n-1] != int32(verb) { // the writes of joined tables share a verb
		t.verbs = append(t.verbs, int32(verb))
	}
	t.mayHide = true
}

// strays checks each verb of a write in the statement. Each verb must be in t.verbs, once and in the order of the text,
// or be a name or a function. Any other verb becomes a part of kind HiddenPart, because an unread write may begin
// there. strays also adds the tables that PostgreSQL's SELECT ... INTO creates.
func (t walker) strays() {
	claimed := t.verbs
	for i := int(t.Lo); i < int(t.Hi); i++ {
		i = t.pastPlain(i)
		tok := &t.Tokens[i]
		switch {
		case tok.Kind != lex.Word:
		case len(claimed) > 0 && int(claimed[0]) == i: // also behind the AS of PREPARE
			claimed = claimed[1:]
		case tok.Label:
		case t.isWord(tok, "into"):
			before := len(t.verbs) - len(claimed)
			if t.grammar.CreatesFrom.Is() && (before == 0 || t.verbs[before-1] != int32(i-1)) {
				t.selectsInto(i)
			}
		case t.isWord(tok, "insert", "update", "delete", "merge", "replace") && t.mayBegin(i):
			t.hides(i)
		}
	}
	if len(claimed) > 0 {
		t.hides(int(claimed[0]))
	}
}

// hides adds a HiddenPart for a write that may begin at a token and ends before the closing bracket around it.
func (t walker) hides(at int) {
	end := at
	for end < int(t.Hi) && !t.Tokens[end].Is(')') && !t.Tokens[end].Is(']') {
		end = t.Skip(end)
	}
	t.Parts = append(t.Parts, Part{Kind: HiddenPart, At: int32(at), Range: rangeOf(at, end)})
}

// mayBegin reports whether the verb at i may begin a write inside of another statement. In doubt it reports true.
//
// A nested write stands in brackets, after the brackets of a WITH, or after the name that ends the WITH's SEARCH or
// CYCLE clause.
func (t walker) mayBegin(i int) bool {
	begins := i == 0 || t.Tokens[i-1].Is('(') || t.Tokens[i-1].Is(')') ||
		i > 1 && t.isWord(&t.Tokens[i-2], "set", "using")
	if !begins {
		return false
	}
	tok, next := &t.Tokens[i], &t.Tokens[i+1]
	switch {
	case t.isWord(tok, "update"): // else a label
		return next.Kind == lex.Quoted || next.Kind == lex.Text && t.grammar.Lex.TextNames.Is() ||
			next.Kind == lex.Word && !t.isWord(next, "from", "where", "group", "having", "union", "intersect",
				"except", "order", "limit", "as", "and", "or", "is", "in", "not", "like", "ilike", "isnull",
				"notnull", "then", "when", "else", "end", "on", "using", "returning")
	case t.isWord(tok, "delete"):
		return t.isWord(next, "from")
	}
	return t.isWord(next, "into", "or")
}

// selectsInto adds the table that the INTO at i creates.
//
//	INTO [TEMPORARY | TEMP | UNLOGGED] [TABLE] name
func (t walker) selectsInto(i int) {
	for i++; t.isWord(&t.Tokens[i], "local", "global", "temp", "temporary", "unlogged", "table"); i++ {
	}
	if _, name, next, ok := t.grammar.Lex.QualifiedName(t.Src, t.Tokens, i); ok {
		t.Parts = append(t.Parts, Part{Kind: IntoPart, At: int32(i), Name: name, Range: rangeOf(i, next)})
	}
}
