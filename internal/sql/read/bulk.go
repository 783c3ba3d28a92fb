package read

// InBulk reports whether a part is a COPY into a table, or a TRUNCATE, of no tables but those that may holds for.
//
//	COPY name [(columns)] FROM ...
//	TRUNCATE [TABLE] [ONLY] name [*], ... [{RESTART | CONTINUE} IDENTITY] [RESTRICT | NOWAIT]
func (t *Text) InBulk(p *Part, may func(schema, name string) bool) bool {
	i := int(p.Lo)
	first := &t.Tokens[i]
	empties := t.isWord(first, "truncate")
	if !empties && !(t.grammar.Code.Is() && t.isWord(first, "copy")) {
		return false
	}
	i++
	if empties && t.isWord(&t.Tokens[i], "table") {
		i++
	}
	for more := true; more; i++ {
		if empties && t.grammar.Only.Is() && t.isWord(&t.Tokens[i], "only") {
			i++
		}
		schema, name, next, ok := t.grammar.Lex.QualifiedName(t.Src, t.Tokens, i)
		if !ok || t.foldedByLocale(i, next) || !may(schema, name) {
			return false
		}
		if i = next; empties && t.Tokens[i].Is('*') {
			i++
		}
		more = empties && t.Tokens[i].Is(',')
	}
	i-- // behind the last name
	if !empties {
		if t.Tokens[i].Is('(') {
			i = t.skip(i)
		}
		return t.isWord(&t.Tokens[i], "from")
	}
	for i < int(p.Hi) && t.isWord(&t.Tokens[i], "restart", "continue", "identity", "restrict", "nowait") {
		i++
	}
	return i == int(p.Hi) // CASCADE empties other tables
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

// Bulk calls f with the tables of a statement that writes or removes rows in bulk, by their normalised names. It is
// for reports: of another statement, or in a form that it doesn't know, there are none.
//
//	COPY name ... | TRUNCATE [TABLE] [ONLY] name, ... | LOAD DATA ... INTO TABLE name ...
func (t *Text) Bulk(p Part, f func(schema, name string)) {
	i, first := int(p.Lo)+1, &t.Tokens[p.Lo]
	several := t.isWord(first, "truncate")
	switch {
	case several || t.isWord(first, "copy"):
	case t.isWord(first, "load"):
		for i < int(p.Hi) && !t.isWord(&t.Tokens[i], "table") {
			i++
		}
	default:
		return
	}
	for {
		for t.isWord(&t.Tokens[i], "table", "only") {
			i++
		}
		schema, name, next, ok := t.grammar.Lex.QualifiedName(t.Src, t.Tokens, i)
		if !ok {
			return
		}
		f(schema, name)
		if i = next + 1; !several || next >= int(p.Hi) || !t.Tokens[next].Is(',') {
			return
		}
	}
}
