package read

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
