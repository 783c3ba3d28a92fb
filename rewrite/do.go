package rewrite

import "strings"

// Reasons that stand in more than one place.
const (
	noCode    = "send its statements one by one, or run it under Bypass"
	codeNames = "code whose text names a registered table can't be guarded; " + noCode
)

// do decides about PostgreSQL's DO, which runs code. It passes if all that the
// code can run stands in it, and names no registered table.
//
//	DO [LANGUAGE name] 'code' [LANGUAGE name]
func (r *reader) do() bool {
	code := -1
	for i := r.i + 1; i < r.stop; i++ {
		switch t := r.toks[i]; {
		case t.kind == text && code < 0:
			code = i
		case r.isWord(t, "language") && i+1 < r.stop && r.isPLpgSQL(r.toks[i+1]):
			i++
		default:
			return r.refuse(-1, i, "code of another language than PL/pgSQL, or in more than one string, can't be read; "+noCode)
		}
	}
	if code < 0 {
		return true // an error
	}
	body, ok := plainText(r.src[r.toks[code].start:r.toks[code].end])
	if !ok {
		return r.refuse(-1, code, "code in a string with escapes can't be read; write it between $$ and $$")
	}
	if !r.codeNamesNothing(code, body) {
		return false
	}
	if executes(body) {
		return r.refuse(-1, code, "what EXECUTE runs is put together at run time and can't be seen; "+noCode)
	}
	return true
}

// executes reports whether PL/pgSQL may run a string: the word EXECUTE stands
// anywhere in the code but where it names a trigger's function or a privilege.
func executes(code string) bool {
	count := 0
	for i := range len(code) {
		if hasPrefixFold(code[i:], "execute") {
			count++
		}
	}
	if count == 0 {
		return false
	}
	toks, err := lex(Postgres, code, nil)
	if err != nil {
		return true
	}
	r := reader{dialect: Postgres, src: code, toks: toks}
	for i := 1; i < len(toks); i++ {
		if r.isWord(toks[i], "execute") && r.namesFunction(i) {
			count--
		}
	}
	return count > 0
}

// namesFunction holds for the EXECUTE at token i if no statement of PL/pgSQL can
// begin there, as none follows these words or a bracket.
//
//	FOR EACH {ROW | STATEMENT} [WHEN (condition)] EXECUTE {FUNCTION | PROCEDURE}
//	{GRANT | REVOKE} EXECUTE ON
func (r *reader) namesFunction(i int) bool {
	before, behind := r.toks[i-1], r.toks[i+1]
	if r.isWord(behind, "on") {
		return r.isWord(before, "grant", "revoke")
	}
	return r.isWord(behind, "function", "procedure") && (r.isWord(before, "row", "statement") || isPunct(before, ')'))
}

// codeNamesNothing refuses code, at a token, in which the name of a registered table
// stands or may stand.
func (r *reader) codeNamesNothing(at int, code string) bool {
	if table := r.namedIn(code); table >= 0 {
		return r.refuse(table, at, codeNames)
	}
	for i := range len(code) {
		if hasPrefixFold(code[i:], `u&"`) {
			return r.refuse(-1, at, "a name spelled with escapes can't be seen in code; write it in double quotes")
		}
	}
	return true
}

// namedIn returns a registered table, or one of sqlfence's own, whose name stands in
// s, be it as a part of another word; or -1.
func (r *reader) namedIn(s string) int {
	for i := range len(s) {
		for k := range r.tables {
			if hasPrefixFold(s[i:], start(r.tables[k].Name)) {
				return k
			}
		}
		for k, own := range ownTables {
			if hasPrefixFold(s[i:], own) {
				return len(r.tables) + k
			}
		}
	}
	return -1
}

// isPLpgSQL reports whether t names that language, as a name or as a string.
func (r *reader) isPLpgSQL(t token) bool {
	name, ok := normal(r.dialect, r.src, t)
	if !ok && t.kind == text {
		name, _ = plainText(r.src[t.start:t.end])
	}
	return name == "plpgsql"
}

// plainText returns what a string constant of PostgreSQL holds, if it is one
// without escapes: in dollars, or in quotes and without a backslash.
func plainText(s string) (string, bool) {
	if s[0] == '$' {
		tag := strings.IndexByte(s[1:], '$') + 2
		return s[tag : len(s)-tag], true
	}
	return unquote(s), s[0] == '\'' && strings.IndexByte(s, '\\') < 0
}

// start returns the part of a table's name that stands in a text however it is
// quoted: in its quotes a name's own are doubled, so up to the first of these.
func start(name string) string {
	if q := strings.IndexAny(name, "\"`'"); q >= 0 {
		return name[:q+1]
	}
	return name
}
