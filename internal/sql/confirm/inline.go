package confirm

// In PostgreSQL's simple protocol there are no arguments: pgx writes their values
// into the text, where its own scanner finds placeholders (QueryExecModeSimpleProtocol,
// which the connection's DSN may ask for, too). That scanner knows strings, quoted
// names, comments and, since 5.9, dollar quotes, but no names: in a$1 it finds $1, and
// in date'\' a string with escapes.

// Inlines reports whether a driver that writes values into the text finds the same placeholders
// there as the server does, and puts no value where it would run together with a string. It holds
// for a dialect with drivers that don't do so. older: also one that knows no dollar quotes.
func (d *Dialect) Inlines(text string, older bool) bool {
	if !d.Inlined.Is() {
		return true
	}
	s := scanner{dialect: d, text: text}
	before, newer, old := sign(0), -1, -1
	for s.next() {
		// 'a' and a string behind a newline are one string.
		if s.sign == signInput && before == signString || s.sign == signString && before == signInput {
			return false
		}
		if before = s.sign; s.sign != signInput {
			continue
		}
		newer, old = d.inlinedAt(text, newer+1, true), d.inlinedAt(text, old+1, false)
		if newer != s.lo || older && old != s.lo {
			return false
		}
	}
	return !s.failed && d.inlinedAt(text, newer+1, true) < 0 && (!older || d.inlinedAt(text, old+1, false) < 0)
}

// inlinedAt returns the first placeholder from i on that a scanner without names finds,
// or -1; dollars says whether it knows dollar quotes.
func (d *Dialect) inlinedAt(s string, i int, dollars bool) int {
	for i >= 0 && i < len(s) {
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
			i = d.lineEnd(s, i)
		case c == '/' && next == '*':
			i = d.commentEnd(s, i)
		case c == '$' && isDigit(next):
			return i
		case c == '$' && dollars:
			tag := i + 1
			for tag < len(s) && inName[s[tag]] && s[tag] != '$' {
				tag++
			}
			if i++; tag < len(s) && s[tag] == '$' {
				i = endOf(s, tag+1, s[i-1:tag+1])
			}
		default:
			i++
		}
	}
	return -1
}
