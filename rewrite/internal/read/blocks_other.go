package read

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// mysqlClass returns the class of a statement that isn't a write of rows. An unknown statement extends to the end of
// the text, because its semicolons may belong to a block.
func (t blocks) mysqlClass() Class {
	first, second := t.tok(), t.peek(1)
	switch {
	case second.Is(':'): // a block's label
	case t.isRead():
		return Reading
	case t.isDynamicOnTiDB(), t.isWord(first, "binlog"):
		return Dynamic
	case t.isWord(first, "begin") && (t.stop == t.i+1 || t.stop == t.i+2 && t.isWord(second, "work")),
		t.isWord(first, "set") && !t.isWord(second, "statement"),
		t.isWord(first, "explain", "describe", "desc") && !t.hasWord("analyze"),
		t.isWord(first, "analyze") && t.isWord(second, "table", "tables", "local", "no_write_to_binlog"),
		t.isWord(first, "execute") && !(t.isWord(second, "immediate") && t.i+2 < t.stop),
		t.isWord(first, "drop") && t.isWord(second, "prepare"), t.isWord(first, "load") && t.isWord(second, "index"),
		t.isWord(first, t.grammar.NoRows...):
		return NoRows
	case t.isWord(first, "set"):
		return t.runs()
	case t.isWord(first, "call"):
		return Call
	case t.isWord(first, "prepare"):
		return t.textAt(t.i+2, "from")
	case t.isWord(first, "execute"):
		return t.textAt(t.i+1, "immediate")
	case t.isWord(first, "create"):
		if class := t.mysqlDefinition(); class != Unknown {
			return class
		}
	case t.dropsNoTable():
		return Definition
	case t.isWord(first, "explain", "describe", "desc", "analyze", "drop", "rename", "truncate", "load"),
		t.isWord(first, "alter") && !t.hasWord("event"):
		return Unknown
	}
	if t.depth == 0 {
		t.stop = len(t.Tokens) - 1
	}
	if t.isWord(first, "create", "alter") { // code that is kept
		return Unknown
	}
	return t.runs()
}

// isDynamicOnTiDB reports whether TiDB prepares or runs SQL, or writes to tables, that the text doesn't show.
//
//	SET SESSION_STATES 'prepared statements and variables'
//	PLAN REPLAYER DUMP [WITH STATS AS OF TIMESTAMP x] EXPLAIN ANALYZE {'file of the client' | SLOW QUERY ...}
//	FLASHBACK {CLUSTER | DATABASE name} TO {TIMESTAMP | TSO} x
func (t blocks) isDynamicOnTiDB() bool {
	first, second := t.tok(), t.peek(1)
	follows := func(word string, kind lex.Kind, words ...string) bool {
		for i := t.i; i+1 < t.stop; i++ {
			if next := &t.Tokens[i+1]; t.isWord(&t.Tokens[i], word) && (next.Kind == kind || t.isWord(next, words...)) {
				return true
			}
		}
		return false
	}
	switch {
	case t.isWord(first, "set"):
		return t.isWord(second, "session_states") && t.peek(2).Kind == lex.Text
	case t.isWord(first, "plan"):
		return t.isWord(second, "replayer") && follows("analyze", lex.Text, "slow")
	}
	return t.isWord(first, "flashback") && !t.isWord(second, "table") && follows("to", lex.End, "timestamp", "tso")
}

// runs returns the class of a block, or of the statement after SET STATEMENT, by the nested statements: Dynamic if a
// nested statement executes a string, Call if it calls a procedure, else Unknown.
func (t blocks) runs() Class {
	class := Unknown
	for i := t.i; i+2 < t.stop; i++ {
		switch tok := &t.Tokens[i]; {
		case t.isWord(tok, "execute") && t.isWord(&t.Tokens[i+1], "immediate"),
			t.isWord(tok, "prepare") && t.isWord(&t.Tokens[i+2], "from"):
			return Dynamic
		case t.isWord(tok, "call"):
			class = Call
		}
	}
	return class
}

// hasWord reports whether a word stands in the region, outside of brackets.
func (t blocks) hasWord(word string) bool {
	for i := t.i; i < t.stop; i = t.Skip(i) {
		if t.isWord(&t.Tokens[i], word) {
			return true
		}
	}
	return false
}

// textAt returns the class of a statement that runs the string after the word at i: Call if the string shows all code
// that can run, else Dynamic.
//
//	PREPARE name FROM 'text'
//	EXECUTE IMMEDIATE 'text' [USING ...]
func (t blocks) textAt(i int, word string) Class {
	if i+1 >= t.stop || !t.isWord(&t.Tokens[i], word) {
		return Dynamic
	}
	s := t.TokenText(int32(i + 1))
	if t.Tokens[i+1].Kind != lex.Text || s[0] != '\'' || strings.IndexByte(s, '\\') >= 0 ||
		i+2 < t.stop && !t.isWord(&t.Tokens[i+2], "using") ||
		finds(t.grammar, unquoted(s), (*Text).executes) {
		return Dynamic
	}
	return Call
}

// executes returns the token of the statement that executes or prepares a string, or -1.
func (t *Text) executes() int32 {
	for i := t.Lo; i < t.Hi; i++ {
		if t.isWord(&t.Tokens[i], "execute", "prepare") {
			return i
		}
	}
	return -1
}

// mysqlDefinition returns Definition for a CREATE that adds an object, and neither changes rows of existing tables nor
// changes them automatically later, as an event does. For a table made of other tables it returns Joins, else Unknown.
//
//	CREATE [OR REPLACE] [TEMPORARY] [UNIQUE | FULLTEXT | SPATIAL | VECTOR] [AGGREGATE]
//	[ALGORITHM = x] [DEFINER = user] [SQL SECURITY x] object ...
func (t blocks) mysqlDefinition() Class {
	i, replaces := t.created()
	if i >= t.stop {
		return Unknown
	}
	switch object := &t.Tokens[i]; {
	case replaces && t.isWord(object, "table", "sequence"):
		return Unknown
	case t.isWord(object, "table") && t.unites():
		return Joins
	case t.isWord(object, "table", "sequence", "index", "view", "database", "schema", "user", "role"),
		t.isWord(object, "procedure", "function") && t.endsText():
		return Definition
	}
	return Unknown
}

// created returns the token of the object that a CREATE creates, or a token from t.stop on, and whether there is an OR
// REPLACE.
func (t blocks) created() (i int, replaces bool) {
	for i = t.i + 1; i < t.stop; {
		next := &t.Tokens[i+1]
		switch tok := &t.Tokens[i]; {
		case t.isWord(tok, "or") && t.isWord(next, "replace"):
			replaces = true
			i += 2
		case t.isWord(tok, "temporary", "unique", "fulltext", "spatial", "vector", "aggregate"):
			i++
		case t.isWord(tok, "algorithm") && next.Is('='), t.isWord(tok, "sql") && t.isWord(next, "security"):
			i += 3
		case t.isWord(tok, "definer") && next.Is('='):
			if i += 3; i < t.stop && (t.Tokens[i].Kind == lex.Variable || t.Tokens[i].Is('(')) {
				i = t.Skip(i)
			}
		default:
			return i, replaces
		}
	}
	return i, replaces
}

// unites reports whether a CREATE TABLE makes a MERGE table: UNION [=] (name, ...).
func (t blocks) unites() bool {
	for i := t.i; i+1 < t.stop; i = t.Skip(i) {
		next := &t.Tokens[i+1]
		names := next.Is('=') ||
			next.Is('(') && !t.isWord(&t.Tokens[i+2], "select", "with", "values", "table")
		if names && t.isWord(&t.Tokens[i], "union") {
			return true
		}
	}
	return false
}

// endsText reports whether nothing follows the region but semicolons.
func (t blocks) endsText() bool {
	i := t.stop
	for t.Tokens[i].Is(';') {
		i++
	}
	return t.Tokens[i].Kind == lex.End
}

// maySet reports whether the statement is a SET, or a MariaDB block that may contain a SET.
func (t *Text) maySet() bool {
	first := &t.Tokens[t.Lo]
	return t.isWord(first, "set", "begin", "declare", "if", "case", "for", "loop", "repeat", "while") ||
		first.Is('<') || t.Tokens[t.Lo+1].Is(':')
}

// inExecuted returns the token of a string that the statement executes or prepares, if find finds something in the
// string; or -1.
func (t *Text) inExecuted(find func(*Text) int32) int32 {
	if !t.isWord(&t.Tokens[t.Lo], "execute", "prepare") {
		return -1
	}
	for i := t.Lo; i < t.Hi; i++ {
		s := t.TokenText(i)
		if t.Tokens[i].Kind != lex.Text || s[0] != '\'' {
			continue
		}
		if finds(t.grammar, unquoted(s), find) {
			return i
		}
	}
	return -1
}

// unquoted returns the content of a plain string in single quotes.
func unquoted(s string) string { return strings.ReplaceAll(s[1:len(s)-1], "''", "'") }

// finds reports whether find finds something in a statement of a text, or the text can't be read.
func finds(g *lex.Grammar, src string, find func(*Text) int32) bool {
	t, err := open(g, src, lex.EscapesUnknown)
	if err != nil {
		return true
	}
	defer t.Close()
	for t.Next() {
		if find(t) >= 0 {
			return true
		}
	}
	return false
}

// clientCharsets are the encodings in which an ASCII byte is always a separate character.
var clientCharsets = []string{"utf8", "utf8mb3", "utf8mb4", "latin1", "ascii", "binary"}

// changesCharset returns the token of a SET that may change the encoding of the following statements, so that the
// server would read other names in them than this package; or -1.
//
//	SET NAMES x | SET {CHARACTER SET | CHARSET} x | SET [SESSION] character_set_client = x
func (t *Text) changesCharset() int32 {
	if !t.maySet() {
		return t.inExecuted((*Text).changesCharset)
	}
	for i := int(t.Lo) + 1; i < int(t.Hi); i++ {
		tok, before, value := &t.Tokens[i], &t.Tokens[i-1], i+1
		switch s := strings.Trim(t.Src[tok.Start:tok.End], "@`"); {
		case lex.EqualFold(s, "character_set_client"):
			for t.Tokens[value].Is(':') || t.Tokens[value].Is('=') {
				value++
			}
			if value == i+1 {
				continue // it is read
			}
		case !before.Is(',') && !t.isWord(before, "set"):
			continue
		case t.isWord(tok, "names", "charset"):
		case t.isWord(tok, "character") && t.isWord(&t.Tokens[value], "set"):
			value++
		default:
			continue
		}
		if !t.isClientCharset(value) {
			return int32(i)
		}
	}
	return -1
}

// isClientCharset reports whether token i is one of clientCharsets, and is all that a SET assigns.
func (t *Text) isClientCharset(i int) bool {
	charset, behind := &t.Tokens[min(i, int(t.Hi))], &t.Tokens[min(i+1, int(t.Hi))]
	ends := i+1 >= int(t.Hi) || behind.Is(',') || behind.Is(';') || t.isWord(behind, "collate")
	s := strings.ToLower(strings.Trim(t.Src[charset.Start:charset.End], "'\"`"))
	return ends && slices.Contains(clientCharsets, s)
}

// wideCharsets are the encodings in which an ASCII letter contains a zero byte.
var wideCharsets = []string{"utf16", "utf16le", "ucs2", "utf32"}

// CutsErrors returns the token of a SET that selects an encoding of several bytes a character for results, or -1. In
// such an encoding the server sends the text of an error only up to the first zero byte.
//
//	SET [SESSION | LOCAL | @@session. | @@] character_set_results = x
func (t *Text) CutsErrors() int32 {
	return t.setsVariable("character_set_results", (*Text).CutsErrors, func(value *lex.Token) bool {
		s := strings.Trim(t.Src[value.Start:value.End], "'\"`")
		return value.Kind == lex.Number || slices.Contains(wideCharsets, strings.ToLower(s))
	})
}

// setsVariable returns the token of a SET that assigns a server variable a value for which is returns true, or -1. find
// searches the strings that the statement executes for such a SET.
func (t *Text) setsVariable(name string, find func(*Text) int32, is func(value *lex.Token) bool) int32 {
	switch {
	case !t.grammar.Blocks.Is():
		return -1
	case !t.maySet():
		return t.inExecuted(find)
	}
	for i := t.Lo + 1; i < t.Hi; i++ {
		tok := &t.Tokens[i]
		s := t.Src[tok.Start:tok.End]
		own := tok.Kind == lex.Variable && !strings.HasPrefix(s, "@@")
		if own || !lex.EqualFold(strings.Trim(s, "@`"), name) {
			continue
		}
		if at := t.afterEquals(i + 1); at > 0 && is(&t.Tokens[at]) {
			return i
		}
	}
	return -1
}

// SetsClock returns the token of a SET that changes the session's time, or -1.
//
//	SET [SESSION | LOCAL | @@session. | @@] timestamp = x
func (t *Text) SetsClock() int32 {
	return t.setsVariable("timestamp", (*Text).SetsClock,
		func(value *lex.Token) bool { return !t.isWord(value, "default") })
}

// PreparesTransaction returns the token that makes the statement prepare a distributed transaction, or -1. The token
// may stand in a block, or in a string that is executed.
//
//	XA PREPARE xid
func (t *Text) PreparesTransaction() int32 {
	if !t.grammar.Blocks.Is() {
		return -1
	}
	executes := t.isWord(&t.Tokens[t.Lo], "execute", "prepare")
	for i := int(t.Lo); i < int(t.Hi); i++ {
		switch tok := &t.Tokens[i]; {
		case t.isWord(tok, "xa") && t.isWord(&t.Tokens[i+1], "prepare"):
			return int32(i)
		case executes && tok.Kind == lex.Text:
			s := strings.ToLower(t.Src[tok.Start:tok.End])
			if strings.Contains(s, "xa") && strings.Contains(s, "prepare") {
				return int32(i)
			}
		}
	}
	return -1
}
