package rewrite

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// maxPostgresName is how many bytes of a name PostgreSQL keeps (NAMEDATALEN-1).
const maxPostgresName = 63

// ParseName reads an SQL name of one or two parts, "books", `shop."Books"`, and
// returns it as the database would after folding: schema (or "") and name.
func ParseName(d Dialect, s string) (schema, name string, err error) {
	toks, lexErr := lex(d, s, nil)
	if lexErr != nil {
		return "", "", fmt.Errorf("name %.80q: %s", s, lexErr.reason)
	}
	r := reader{dialect: d, src: s, toks: toks}
	n, ok := r.name()
	if !ok || r.tok().kind != end {
		return "", "", fmt.Errorf("name %.80q: want table or schema.table, each part in double quotes if it isn't a plain word", s)
	}
	for _, t := range toks {
		if d == Postgres && t.kind == word && foldsByLocale(s[t.start:t.end]) {
			return "", "", fmt.Errorf("name %.80q: to what PostgreSQL folds it depends on the database's encoding; write it in double quotes, as it is stored", s)
		}
	}
	return n.schema, n.name, nil
}

// ParseColumn reads the name of a column.
func ParseColumn(d Dialect, s string) (string, error) {
	schema, name, err := ParseName(d, s)
	if err == nil && schema != "" {
		err = fmt.Errorf("name %.80q: want one column's name", s)
	}
	return name, err
}

// normal returns the name that a token stands for, folded; ok is false for what
// is no name. SQLite takes a string for a name where a name has to stand.
func normal(d Dialect, src string, t token) (name string, ok bool) {
	s := src[t.start:t.end]
	switch {
	case t.kind == word:
		return clip(d, lower(s)), true
	case t.kind == quoted && s[0]|0x20 == 'u':
		return clip(d, unescape(unquote(s[2:]))), true
	case t.kind == quoted && d == SQLite, t.kind == text && d == SQLite && s[0] == '\'':
		return lower(unquote(s)), true
	case t.kind == quoted:
		return clip(d, unquote(s)), true
	}
	return "", false
}

// lower folds ASCII letters, as both databases do; it doesn't allocate if there
// are none to fold.
func lower(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= 'A' && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i] >= 'A' && b[i] <= 'Z' {
					b[i] |= 0x20
				}
			}
			return string(b)
		}
	}
	return s
}

// clip cuts a name as PostgreSQL does, at a character's start.
func clip(d Dialect, s string) string {
	if d != Postgres || len(s) <= maxPostgresName {
		return s
	}
	n := maxPostgresName
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// unquote strips the quotes and undoubles those inside.
func unquote(s string) string {
	q, inner := s[len(s)-1], s[1:len(s)-1]
	if q == ']' || strings.IndexByte(inner, q) < 0 {
		return inner
	}
	return strings.ReplaceAll(inner, string([]byte{q, q}), string(q))
}

// unescape reads the \XXXX and \+XXXXXX of a U&"" name. A malformed one is an
// error in PostgreSQL, so what is made of it doesn't matter.
func unescape(s string) string {
	var b strings.Builder
	high := rune(-1) // the first of a surrogate pair
	for i := 0; i < len(s); {
		digits := 4
		switch {
		case s[i] != '\\':
			b.WriteByte(s[i])
			i++
			continue
		case strings.HasPrefix(s[i:], `\\`):
			b.WriteByte('\\')
			i += 2
			continue
		case strings.HasPrefix(s[i:], `\+`):
			digits = 6
			i++
		}
		stop := min(i+1+digits, len(s))
		code, err := strconv.ParseUint(s[i+1:stop], 16, 32)
		i = stop
		switch r := rune(code); {
		case err != nil || code == 0:
		case utf16.IsSurrogate(r) && high < 0:
			high = r
		case high >= 0:
			b.WriteRune(utf16.DecodeRune(high, r))
			high = -1
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// quoteName writes a normalised name so that it is read as just that.
func quoteName(d Dialect, name string) string {
	if d == SQLite {
		return sqltext.QuoteSQLite(name)
	}
	return sqltext.QuotePostgres(name)
}

// quoteText writes a string constant that reads alike whatever the setting of
// standard_conforming_strings.
func quoteText(d Dialect, s string) string {
	q := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if d == Postgres && strings.IndexByte(s, '\\') >= 0 {
		return "E" + strings.ReplaceAll(q, `\`, `\\`)
	}
	return q
}
