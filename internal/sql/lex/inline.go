package lex

import "strings"

// PostgreSQL's simple protocol has no arguments. pgx writes the values into the text, where pgx's scanner finds
// placeholders (QueryExecModeSimpleProtocol, which a connection's DSN can select). This scanner knows strings, quoted
// names, comments and, since 5.9, dollar quotes, but no unquoted names: in a$1 it finds $1, and in date'\' a string
// with escapes.

// Inlines reports whether a driver that writes values into the text finds the same placeholders as the server, and puts
// no value where the value would run together with a string. It is true if all drivers of the database send arguments
// separately. If older is set, it must hold for drivers without dollar quotes. Strings are read without escapes, as pgx
// writes values only if standard_conforming_strings is on and client_encoding is UTF8.
func (r *Rules) Inlines(text string, older bool) bool {
	if !r.DollarQuotes.Is() {
		return true
	}
	tokens, err := Scan(r, text, EscapesNone, nil)
	if err != nil {
		return false
	}
	before, newer, old := Kind(0), -1, -1
	for i := range tokens {
		tok := &tokens[i]
		// The server joins 'a' and a string on the next line into one string.
		if tok.Kind == Param && before == Text || tok.Kind == Text && before == Param {
			return false
		}
		if before = tok.Kind; before != Param {
			continue
		}
		newer, old = r.inlinedAt(text, newer+1, true), r.inlinedAt(text, old+1, false)
		if newer != int(tok.Start) || older && old != newer {
			return false
		}
	}
	return r.inlinedAt(text, newer+1, true) < 0 && (!older || r.inlinedAt(text, old+1, false) < 0)
}

// Misplaces is the opposite of Inlines for any text with arguments. Most texts contain neither a backslash nor a stray
// dollar, the only signs that the scanners read differently.
func (r *Rules) Misplaces(text string) bool {
	return r.DollarQuotes.Is() && (strings.IndexByte(text, '\\') >= 0 || hasStrayDollar(text)) && !r.Inlines(text, true)
}

// hasStrayDollar reports whether a dollar may not belong to a placeholder.
func hasStrayDollar(text string) bool {
	for i := strings.IndexByte(text, '$'); i >= 0 && i < len(text); i++ {
		if text[i] == '$' && (i+1 == len(text) || !IsDigit(text[i+1]) || i > 0 && IsNamePart(text[i-1])) {
			return true
		}
	}
	return false
}

// inlinedAt returns the first placeholder from i on that a scanner without names finds, or -1. dollars reports whether
// the scanner knows dollar quotes.
func (r *Rules) inlinedAt(s string, i int, dollars bool) int {
	for i < len(s) {
		c, next := s[i], byte(0)
		if i+1 < len(s) {
			next = s[i+1]
		}
		switch {
		case (c == 'e' || c == 'E') && next == '\'':
			i = quoteEnd(s, i+2, '\'', true)
		case c == '\'' || c == '"':
			i = quoteEnd(s, i+1, c, false)
		case c == '-' && next == '-', c == '/' && next == '*':
			blank, _ := r.SkipBlank(s[i:])
			i += blank
		case c == '$' && IsDigit(next):
			return i
		case c == '$' && dollars:
			tag := i + 1
			for tag < len(s) && IsNamePart(s[tag]) && s[tag] != '$' {
				tag++
			}
			if i++; tag < len(s) && s[tag] == '$' {
				quote := s[i-1 : tag+1]
				end := strings.Index(s[tag+1:], quote)
				if end < 0 {
					return -1
				}
				i = tag + 1 + end + len(quote)
			}
		default:
			i++
		}
	}
	return -1
}

// quoteEnd returns the offset after the closing quote of the string or name that is open at i, or the length of s.
func quoteEnd(s string, i int, quote byte, escapes bool) int {
	for ; i < len(s); i++ {
		switch {
		case s[i] == '\\' && escapes:
			i++
		case s[i] != quote:
		case i+1 < len(s) && s[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return len(s)
}
