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
		if !ok || !may(schema, name) {
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
