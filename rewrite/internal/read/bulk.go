package read

// Bulk returns the tables that a statement fills or empties, by their normalised names, and whether it can write to no
// other one. Of another statement there are none.
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
