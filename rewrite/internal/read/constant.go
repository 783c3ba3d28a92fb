package read

import (
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Constant parses a value that is a placeholder, an integer or a plain string, optionally with a cast that keeps the
// text; ok is false for any other value. The caller must call [Text.NumberInputs] first.
//
//	constant [::type ...] | CAST(constant AS type) | type 'constant'
func (t *Text) Constant(value lex.Range) (c guard.KeyValue, ok bool) {
	if value.Empty() {
		return guard.KeyValue{}, false
	}
	i, hi := int(value.Lo), int(value.Hi)
	if !t.isWord(&t.Tokens[i], "cast") || !t.Tokens[i+1].Is('(') {
		c, next, ok := t.castConstant(i)
		return c, ok && next == hi
	}
	c, next, ok := t.castConstant(i + 2)
	if !ok || !t.isWord(&t.Tokens[next], "as") {
		return guard.KeyValue{}, false
	}
	next, ok = t.keepingType(next + 1)
	return c, ok && next == int(t.Tokens[i+1].Mate) && next+1 == hi
}

// castConstant parses a constant with an optional type before it or ::type after it. next is the token after it.
func (t *Text) castConstant(i int) (c guard.KeyValue, next int, ok bool) {
	if typed, ok := t.keepingType(i); ok && t.grammar.TypedConstants.Is() {
		c, ok = t.constant(&t.Tokens[typed])
		return c, typed + 1, ok && t.Tokens[typed].Kind == lex.Text
	}
	c, ok = t.constant(&t.Tokens[i])
	for next = i + 1; ok && t.grammar.TypedConstants.Is() && t.Tokens[next].Is(':') && t.Tokens[next+1].Is(':'); {
		next, ok = t.keepingType(next + 2)
	}
	return c, next, ok
}

// constant reads a placeholder, an integer or a plain string.
func (t *Text) constant(tok *lex.Token) (guard.KeyValue, bool) {
	s := t.Src[tok.Start:tok.End]
	switch {
	case tok.Kind == lex.Param && t.grammar.Lex.Variables.Is() && s[0] == '$' && s[1:] != strconv.Itoa(int(tok.Mate)):
		return guard.KeyValue{Name: s[1:]}, !lex.IsDigit(s[1]) // drivers bind $2 by its number or by its place
	case tok.Kind == lex.Param && t.grammar.Lex.Variables.Is() && s[0] != '?':
		return guard.KeyValue{Ordinal: int(tok.Mate), Name: s[1:]}, true
	case tok.Kind == lex.Param:
		return guard.KeyValue{Ordinal: int(tok.Mate)}, true
	case tok.Kind == lex.Number && strings.Trim(s, "0123456789") == "" && (s == "0" || s[0] != '0'):
		return guard.KeyValue{Text: s}, true
	case tok.Kind == lex.Text && s[0] == '\'' && !strings.Contains(s, `\`):
		return guard.KeyValue{Text: lex.Unquote(s)}, true
	}
	return guard.KeyValue{}, false
}

// keepingType reads the name of a type that stores a constant's text unchanged, or refuses the text. A type that
// rounds, cuts or pads the text is no such type. In SQLite only text is one, because CAST refuses nothing.
func (t *Text) keepingType(i int) (next int, ok bool) {
	if t.grammar.TypedConstants.Is() && t.isWord(&t.Tokens[i], "pg_catalog") && t.Tokens[i+1].Is('.') {
		i += 2
	}
	next = i + 1
	switch {
	case t.grammar.TypedConstants.Is() && t.isWord(&t.Tokens[i], "character") && t.isWord(&t.Tokens[next], "varying"):
		next++
	case !t.isWord(&t.Tokens[i], t.grammar.KeepingTypes...):
		return i, false
	}
	return next, !t.Tokens[next].Is('(') && !t.Tokens[next].Is('[') && !t.isWord(&t.Tokens[next], "array")
}
