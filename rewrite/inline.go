package rewrite

// In PostgreSQL's simple protocol there are no arguments: pgx writes their values
// into the text, where its own scanner finds placeholders (QueryExecModeSimpleProtocol,
// which the connection's DSN may ask for, too). That scanner knows strings, quoted
// names, comments and, since 5.9, dollar quotes, but no names: in a$1 it finds $1, and
// in date'\' a string with escapes.

// inlines reports whether such a driver finds the same placeholders in a statement
// as the server does, and puts no value where it would run together with a string.
func inlines(text string) bool {
	buf := scannedPool.Get().(*[]scanned)
	toks, ok := scan(Postgres, text, (*buf)[:0])
	if !ok {
		return false
	}
	defer func() {
		*buf = toks[:0]
		scannedPool.Put(buf)
	}()
	places := make([]int, 0, 16)
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
	return inlined(text, true, places) && inlined(text, false, places)
}

// inlined reports whether the placeholders that a scanner without names finds are
// at these places; dollars tells whether it knows dollar quotes.
func inlined(s string, dollars bool, places []int) bool {
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
			if found == len(places) || places[found] != i {
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
