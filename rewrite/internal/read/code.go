package read

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
)

// Code returns the code that a DO runs, and at, the index of the token with the code. For a DO without code, which the
// database refuses, at is p.Hi. If reason isn't [advise.Readable], at is the token that can't be read, for this reason.
//
//	DO [LANGUAGE name] 'code' [LANGUAGE name]
func (t *Text) Code(p Part) (code string, at int32, reason advise.Code) {
	at = -1
	for i := p.Lo + 1; i < p.Hi; i++ {
		switch tok := &t.Tokens[i]; {
		case tok.Kind == lex.Text && at < 0:
			at = i
		case t.isWord(tok, "language") && i+1 < p.Hi && t.isPLpgSQL(i+1):
			i++
		default:
			return "", i, advise.OtherLanguage
		}
	}
	if at < 0 {
		return "", p.Hi, advise.Readable
	}
	code, ok := plainText(t.TokenText(at))
	if !ok {
		return "", at, advise.EscapedCode
	}
	return code, at, advise.Readable
}

// isPLpgSQL reports whether token i names PL/pgSQL, as a name or as a string.
func (t *Text) isPLpgSQL(i int32) bool {
	name, ok := t.Name(int(i))
	if !ok && t.Tokens[i].Kind == lex.Text {
		name, _ = plainText(t.TokenText(i))
	}
	return name == "plpgsql"
}

// plainText returns the content of a PostgreSQL string constant without escapes: in dollar quotes, or in quotes without
// a backslash.
func plainText(s string) (string, bool) {
	if s[0] == '$' {
		tag := strings.IndexByte(s[1:], '$') + 2
		return s[tag : len(s)-tag], true
	}
	return lex.Unquote(s), s[0] == '\'' && strings.IndexByte(s, '\\') < 0
}

// Executes reports whether PL/pgSQL may run a string: the code contains the word EXECUTE, other than before the
// function of a trigger or as a privilege.
func Executes(g *lex.Grammar, code string) bool {
	count := 0
	for i := range len(code) {
		if lex.HasPrefixFold(code[i:], "execute") {
			count++
		}
	}
	if count == 0 {
		return false
	}
	t, err := open(g, code, lex.EscapesUnknown)
	if err != nil {
		return true
	}
	defer t.Close()
	for i := 1; i < len(t.Tokens); i++ {
		if t.isWord(&t.Tokens[i], "execute") && t.namesFunction(i) {
			count--
		}
	}
	return count > 0
}

// namesFunction reports whether the EXECUTE at token i names a trigger's function or a privilege: after the tokens
// before it, no statement of PL/pgSQL can begin.
//
//	FOR EACH {ROW | STATEMENT} [WHEN (condition)] EXECUTE {FUNCTION | PROCEDURE}
//	{GRANT | REVOKE} EXECUTE ON
func (t *Text) namesFunction(i int) bool {
	before, behind := &t.Tokens[i-1], &t.Tokens[i+1]
	if t.isWord(behind, "on") {
		return t.isWord(before, "grant", "revoke")
	}
	return t.isWord(behind, "function", "procedure") && (t.isWord(before, "row", "statement") || before.Is(')'))
}
