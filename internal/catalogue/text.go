package catalogue

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// A text is SQL that the database stores, as lexical tokens. SQL that can't be read has only the End token.
type text struct {
	db   *Database
	src  string
	toks []lex.Token
	read bool
}

func (db *Database) text(src string) text {
	toks, err := lex.Scan(db.rules(), src, lex.EscapesNone, nil)
	if err != nil {
		toks = []lex.Token{{Kind: lex.End, Start: int32(len(src)), End: int32(len(src))}}
	}
	return text{db, src, toks, err == nil}
}

// word returns the keyword that token i may be, in lower case; empty if the token is no keyword.
func (t text) word(i int) string {
	if i < 0 || i >= len(t.toks) || t.toks[i].Kind != lex.Word || t.toks[i].Label {
		return ""
	}
	return lex.Fold(t.src[t.toks[i].Start:t.toks[i].End])
}

func (t text) is(i int, words ...string) bool { return slices.Contains(words, t.word(i)) }

// name returns the name at token i, normalized by same; empty if the token is no name.
func (t text) name(i int) string {
	name, _ := t.db.rules().Name(t.src, &t.toks[i])
	return t.db.same(name)
}

// find returns the index at which a sequence of keywords first begins; -1 if the text doesn't contain it.
func (t text) find(words ...string) int {
	for i := range t.toks {
		k := 0
		for k < len(words) && t.is(i+k, words[k]) {
			k++
		}
		if k == len(words) {
			return i
		}
	}
	return -1
}

// names returns the names and keywords, normalized by same, without the contents of constants.
func (t text) names() map[string]bool {
	found := make(map[string]bool)
	for i := range t.toks {
		if t.toks[i].Kind == lex.Word || t.toks[i].Kind == lex.Quoted {
			found[t.name(i)] = true
		}
	}
	return found
}

func (t text) constant(i int) string {
	s := t.src[t.toks[i].Start:t.toks[i].End]
	if s[0] == '$' {
		delimiter := s[:strings.IndexByte(s[1:], '$')+2]
		return strings.TrimSuffix(s[len(delimiter):], delimiter)
	}
	return lex.Unquote(s[strings.IndexAny(s, `'"`):])
}

// A relationName is a table's name in a text, normalized by same; schema may be empty.
type relationName struct{ schema, name string }

// table reads the name of a table, and returns the index after the name.
func (t text) table(i int) (n relationName, next int, ok bool) {
	schema, name, next, ok := t.db.rules().QualifiedName(t.src, t.toks, i)
	return relationName{t.db.same(schema), t.db.same(name)}, next, ok
}

// tables returns the table names from i up to an ending keyword, including names in brackets.
func (t text) tables(i int, ends ...string) (found []relationName) {
	for depth := 0; t.toks[i].Kind != lex.End; {
		switch n, next, ok := t.table(i); {
		case t.toks[i].Is(';'), depth == 0 && t.is(i, ends...):
			return found
		case ok:
			found = append(found, n)
			i = next
			continue
		case t.toks[i].Is('('):
			depth++
		case t.toks[i].Is(')'):
			depth--
		}
		i++
	}
	return found
}

// from returns the tables of a query's FROM. For a text that can't be read, from returns all words.
func (t text) from() []relationName {
	if !t.read {
		return t.unread()
	}
	for i := 0; i < len(t.toks); i++ {
		switch {
		case t.toks[i].Is('('):
			i = int(t.toks[i].Mate)
		case t.is(i, "from") && !t.is(i-1, "distinct"):
			return t.tables(i+1, "where", "group", "having", "order", "limit", "with", "union", "for", "window",
				"offset", "fetch")
		}
	}
	return nil
}

// unread returns each word of a text that can't be read.
func (t text) unread() (found []relationName) {
	for _, word := range strings.FieldsFunc(t.src, func(r rune) bool { return r < 0x80 && !lex.IsNamePart(byte(r)) }) {
		found = append(found, relationName{name: t.db.same(lex.Fold(word))})
	}
	return found
}
