package rewrite

// In PostgreSQL's simple protocol there are no arguments: pgx writes their values
// into the text, where its own scanner finds placeholders (QueryExecModeSimpleProtocol,
// which the connection's DSN may ask for, too). That scanner knows strings, quoted
// names, comments and, since 5.9, dollar quotes, but no names: in a$1 it finds $1, and
// in date'\' a string with escapes.

// inlined reports whether such a driver finds the same placeholders in a statement
// as the server does, and puts no value where it would run together with a string.
func inlined(text string, toks []scanned) bool {
	places := make([]int32, 0, 16)
	for i, t := range toks {
		if t.kind != '$' {
			continue
		}
		// 'a' and a string behind a newline are one string.
		if i > 0 && toks[i-1].kind == 's' || i+1 < len(toks) && toks[i+1].kind == 's' {
			return false
		}
		places = append(places, t.lo)
	}
	return inlinedAt(text, places, true) && inlinedAt(text, places, false)
}

// inlinedAt reports whether the placeholders that a scanner without names finds are
// at these places; dollars tells whether it knows dollar quotes.
func inlinedAt(s string, places []int32, dollars bool) bool {
	found := 0
	for i := 0; i >= 0 && i < len(s); {
		next := byte(0)
		if i+1 < len(s) {
			next = s[i+1]
		}
		switch c := s[i]; {
		case (c == 'e' || c == 'E') && next == '\'':
			i = quoteEnd(s, i+2, '\'', true)
		case c == '\'' || c == '"':
			i = quoteEnd(s, i+1, c, false)
		case c == '-' && next == '-':
			i = lineEnd(Postgres, s, i)
		case c == '/' && next == '*':
			i = commentEnd(Postgres, s, i)
		case c == '$' && next >= '0' && next <= '9':
			if found == len(places) || int(places[found]) != i {
				return false
			}
			found++
			i++
		case c == '$' && dollars:
			tag := i + 1
			for tag < len(s) && (inName(s[tag]) || s[tag] >= '0' && s[tag] <= '9') && s[tag] != '$' {
				tag++
			}
			if i++; tag < len(s) && s[tag] == '$' {
				i = endOf(s, tag+1, s[i-1:tag+1])
			}
		default:
			i++
		}
	}
	return found == len(places)
}
