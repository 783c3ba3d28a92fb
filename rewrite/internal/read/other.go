package read

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// other classifies a statement that isn't a write of rows by its first words.
func (t walker) other(begin int) {
	t.part(OtherPart, begin, begin)
	p := &t.Parts[len(t.Parts)-1]
	if inner := t.wrapped(begin); inner > 0 {
		p.Class, p.Hi = NoRows, int32(inner)
		t.Wrapped, t.i = true, inner
		t.statement()
		return
	}
	p.Class = t.class()
	if p.Hi = int32(t.stop); t.depth == 0 {
		t.Hi = p.Hi
	}
	if p.Class == Call {
		p.Lo = int32(t.afterOwnName(begin))
	}
	t.mayHide = t.mayHide || p.Class == Reading || p.Class == Definition
}

func (t walker) class() Class {
	switch first := t.tok(); {
	case t.grammar.Blocks.Is():
		return blocks{t}.mysqlClass()
	case t.grammar.Code.Is() && t.isWord(first, "do"):
		return Do
	case t.grammar.Code.Is() && t.isWord(first, "call"):
		return Call
	case t.isWord(first, t.grammar.NoRows...), t.grammar.Code.Is() && t.isWord(first, "prepare") &&
		t.isWord(t.peek(1), "transaction") && t.peek(2).Kind == lex.Text:
		return NoRows
	case t.grammar.CreatesFrom.Is() && t.joins():
		return Joins
	case t.isRead():
		return Reading
	case t.isDefinition():
		return Definition
	}
	return Unknown
}

// afterOwnName returns the token after the name of the called procedure or prepared statement, because this name means
// no table, even if a table has the same name. Table names can follow. Without a procedure or prepared statement the
// result is begin.
//
//	CALL name [(...)] | PREPARE name ...
func (t walker) afterOwnName(begin int) int {
	switch first := &t.Tokens[begin]; {
	case t.isWord(first, "call"):
		_, _, i, ok := t.grammar.Lex.QualifiedName(t.Src, t.Tokens, begin+1)
		if ok && (i >= t.stop || t.Tokens[i].Is('(')) {
			return i
		}
	case t.isWord(first, "prepare"):
		if t.grammar.Lex.IsName(t.Src, &t.Tokens[begin+1]) {
			return begin + 2
		}
	}
	return begin
}

// wrapped returns the first token of the inner statement that a PREPARE prepares, or that a SET STATEMENT sets
// variables for. It returns 0 for any other statement.
//
//	PREPARE name [(types)] AS statement
//	SET STATEMENT variable = x, ... FOR statement
func (t walker) wrapped(begin int) int {
	first, second, word := &t.Tokens[begin], &t.Tokens[min(begin+1, t.stop)], "as"
	switch {
	case t.Wrapped || t.depth > 0:
		return 0
	case t.grammar.Code.Is() && t.isWord(first, "prepare") && t.grammar.Lex.IsName(t.Src, second):
	case t.grammar.Blocks.Is() && t.isWord(first, "set") && t.isWord(second, "statement") &&
		blocks{t}.runs() == Unknown:
		word = "for" // a statement that executes a string would read the string under the sql_mode that is set here
	default:
		return 0
	}
	for i := begin + 2; i < t.stop-1; i = t.Skip(i) {
		if t.isWord(&t.Tokens[i], word) {
			return i + 1
		}
	}
	return 0
}

// Referenced returns the token after the name of a foreign key's table, if REFERENCES stands at token i; otherwise i.
//
//	REFERENCES name
func (t *Text) Referenced(i int32) int32 {
	if t.isWord(&t.Tokens[i], "references") {
		if _, _, next, ok := t.grammar.Lex.QualifiedName(t.Src, t.Tokens, int(i)+1); ok {
			return int32(next)
		}
	}
	return i
}

// isRead reports whether the statement only reads, unless it hides a write.
func (t walker) isRead() bool {
	i := t.i
	for t.Tokens[i].Is('(') {
		i++
	}
	switch first := &t.Tokens[i]; {
	case t.isWord(first, "select", "values", "table", "with"):
		return true
	case !t.grammar.Code.Is():
		return false
	case t.isWord(first, "copy"):
		return t.isCopyTo()
	default:
		return t.isWord(first, "declare")
	}
}

// isCopyTo reports whether the statement is COPY name [(columns)] TO or COPY (query) TO.
func (t walker) isCopyTo() bool {
	i := t.i + 1
	if !t.Tokens[i].Is('(') {
		var ok bool
		if _, _, i, ok = t.grammar.Lex.QualifiedName(t.Src, t.Tokens, i); !ok {
			return false
		}
	}
	if t.Tokens[i].Is('(') {
		i = t.Skip(i)
	}
	return t.isWord(&t.Tokens[i], "to")
}

// isDefinition reports whether the statement creates an object, and neither changes rows of existing tables nor changes
// them automatically later, as a trigger does. It also reports true for a statement that drops an object without rows.
func (t walker) isDefinition() bool {
	if !t.isWord(t.tok(), "create") {
		return t.dropsNoTable()
	}
	i := t.i + 1
	for t.isWord(&t.Tokens[i], "or", "replace", "global", "local", "temp", "temporary", "unlogged", "unique",
		"recursive", "materialized", "virtual") {
		i++
	}
	return t.isWord(&t.Tokens[i], "table", "index", "view", "function", "procedure", "sequence", "type", "domain",
		"statistics", "policy", "publication", "role", "user")
}

// dropsNoTable reports whether the statement is a DROP of a function, role or other object with a separate namespace.
// So the object's name means no table, even if a table has the same name.
func (t walker) dropsNoTable() bool {
	return t.isWord(t.tok(), "drop") && t.isWord(t.peek(1), "function", "procedure", "routine", "aggregate",
		"role", "user")
}

// joins reports whether the statement is a CREATE TABLE that makes a table a part of another table: a write to either
// table may then reach rows of the other table.
//
//	CREATE TABLE name PARTITION OF parent ...
//	CREATE TABLE name (...) INHERITS (parent, ...)
func (t walker) joins() bool {
	if !t.isWord(t.tok(), "create") {
		return false
	}
	for i := t.i; i < t.stop; i = t.Skip(i) {
		if t.isWord(&t.Tokens[i], "partition") && t.isWord(&t.Tokens[i+1], "of") ||
			t.isWord(&t.Tokens[i], "inherits") && t.Tokens[i+1].Is('(') {
			return true
		}
	}
	return false
}

// ChangesEncoding returns a token of the statement that may change the connection's encoding for the following
// statements, or -1. In some encodings the second byte of a character is a backslash to a reader of UTF-8. The text
// doesn't show all ways to change the encoding, so package lex refuses a text with a meaning that depends on the
// encoding.
func (t *Text) ChangesEncoding() int32 {
	if t.grammar.Blocks.Is() {
		return t.changesCharset()
	}
	first := &t.Tokens[t.Lo]
	if t.grammar.Lex.Encoding == "" || t.isWord(first, "show", "reset") || t.isWord(first, "set") && t.setsUTF8() {
		return -1
	}
	for i := t.Lo; i < t.Hi; i++ {
		switch tok := &t.Tokens[i]; {
		case tok.Kind == lex.Word:
			if t.isWord(tok, "client_encoding") || t.setsNames(i) {
				return i
			}
		case int(tok.End-tok.Start) < len("'client_encoding'"):
		case tok.Kind == lex.Quoted:
			if name, _ := t.Name(int(i)); name == "client_encoding" {
				return i
			}
		case tok.Kind == lex.Text: // set_config('client_encoding', ...)
			if strings.EqualFold(strings.Trim(t.TokenText(i), "'eEnN"), "client_encoding") {
				return i
			}
		}
	}
	return -1
}

// setsNames reports whether token i is the NAMES of SET [SESSION | LOCAL] NAMES.
func (t *Text) setsNames(i int32) bool {
	return t.isWord(&t.Tokens[i], "names") && t.isWord(&t.Tokens[t.Lo], "set") &&
		(i == t.Lo+1 || i == t.Lo+2 && t.isWord(&t.Tokens[i-1], "session", "local"))
}

// EncodingSetting returns the name of the setting that [Text.ChangesEncoding] protects, and the required value.
func (t *Text) EncodingSetting() (name, value string) {
	name = t.grammar.Lex.Encoding
	if t.grammar.Blocks.Is() {
		return name, "utf8mb4"
	}
	return name, "UTF8"
}

// setsUTF8 reports whether the statement ends with a name of UTF-8.
func (t *Text) setsUTF8() bool {
	tok := &t.Tokens[t.Hi-1]
	s := strings.ToLower(strings.Trim(t.Src[tok.Start:tok.End], `'"`))
	return s == "utf8" || s == "utf-8" || s == "unicode"
}

// Bulk returns the tables that a statement fills or empties, by their normalised names, and whether the statement can
// write to no other table. For any other statement the list is empty.
//
//	COPY name [(columns)] FROM ...
//	TRUNCATE [TABLE] [ONLY] name [*], ... [{RESTART | CONTINUE} IDENTITY] [RESTRICT | NOWAIT]
//	LOAD ... INTO TABLE name ...
func (t *Text) Bulk(p *Part) (tables []Target, alone bool) {
	i, first := int(p.Lo)+1, &t.Tokens[p.Lo]
	empties, copies := t.isWord(first, "truncate"), t.grammar.Code.Is() && t.isWord(first, "copy")
	switch {
	case empties && t.isWord(&t.Tokens[i], "table"):
		i++
	case empties, copies:
	case t.isWord(first, "load"):
		for i < int(p.Hi) && !t.isWord(&t.Tokens[i-1], "table") {
			i++
		}
	default:
		return nil, false
	}
	for more := true; more; i++ {
		if empties && t.grammar.Only.Is() && t.isWord(&t.Tokens[i], "only") {
			i++
		}
		schema, name, next, ok := t.grammar.Lex.QualifiedName(t.Src, t.Tokens, i)
		if !ok || t.foldedByLocale(i, next) {
			return tables, false
		}
		tables = append(tables, Target{Schema: schema, Name: name, At: int32(i), NameAt: int32(next - 1)})
		if i = next; empties && t.Tokens[i].Is('*') {
			i++
		}
		more = empties && t.Tokens[i].Is(',')
	}
	i-- // behind the last name
	if copies {
		if t.Tokens[i].Is('(') {
			i = t.Skip(i)
		}
		return tables, t.isWord(&t.Tokens[i], "from")
	}
	for i < int(p.Hi) && t.isWord(&t.Tokens[i], "restart", "continue", "identity", "restrict", "nowait") {
		i++
	}
	return tables, empties && i == int(p.Hi) // CASCADE empties other tables
}

// foldedByLocale reports whether the database's locale decides how one of the tokens is folded.
func (t *Text) foldedByLocale(from, to int) bool {
	for i := from; i < to; i++ {
		if _, unclear := t.grammar.Lex.FoldedByLocale(t.Src, &t.Tokens[i]); unclear {
			return true
		}
	}
	return false
}
