package lex

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// twoParts is how many tokens a name of two parts has: a . b
const twoParts = 3

// ParseName reads an SQL name of one or two parts, "books", `shop."Books"`, and returns schema (or "") and name as the
// database folds them. If the database allows catalogs, the name may have the database's name as a third part in front.
func (r *Rules) ParseName(s string) (schema, name string, err error) {
	return r.parseName(s, "table or schema.table, each part in double quotes if it isn't a plain word")
}

// parseName is ParseName. want ends the error of a text that is no name.
func (r *Rules) parseName(s, want string) (schema, name string, err error) {
	toks, lexErr := Scan(r, s, EscapesNone, nil)
	if lexErr != nil {
		return "", "", fmt.Errorf("name %.80q: %w", s, lexErr)
	}
	schema, name, next, ok := r.QualifiedName(s, toks, 0)
	if !ok || toks[next].Kind != End || next > twoParts && !r.Catalogs.Is() {
		return "", "", fmt.Errorf("name %.80q: want %s", s, want)
	}
	if r.TwoModes.Is() && strings.Contains(schema+name, "?") {
		return "", "", fmt.Errorf("name %.80q: MySQL reads an emoji in another name as a question mark; rename it", s)
	}
	for _, t := range toks {
		if r.LocaleFolds.Is() && t.Kind == Word && foldsByLocale(s[t.Start:t.End]) {
			return "", "", fmt.Errorf("name %.80q: the database folds it in a way that depends on its encoding; "+
				"write it in double quotes, as it is stored", s)
		}
	}
	return schema, name, nil
}

// SpellName is ParseName for a name that is sent to the database: capital letters stay if the database may distinguish
// them.
func (r *Rules) SpellName(s string) (schema, name string, err error) {
	schema, name, err = r.ParseName(s)
	if err != nil || !r.FoldsQuoted.Is() {
		return schema, name, err
	}
	toks, _ := Scan(r, s, EscapesNone, nil) // ParseName has read it
	schema, name = "", ""
	for i := range toks {
		if t := &toks[i]; r.IsName(s, t) {
			schema, name = name, s[t.Start:t.End]
			if t.Kind != Word {
				name = Unquote(name)
			}
		}
	}
	return schema, name, nil
}

// ParseColumn reads the name of a column.
func (r *Rules) ParseColumn(s string) (string, error) {
	const want = "the name of one column, in double quotes if it isn't a plain word"
	schema, name, err := r.parseName(s, want)
	if err == nil && schema != "" {
		err = fmt.Errorf("name %.80q: want %s", s, want)
	}
	return name, err
}

// QualifiedName reads a name of up to three parts from token i on. It returns the last two parts and the index of the
// token after the name.
func (r *Rules) QualifiedName(src string, toks []Token, i int) (schema, name string, next int, ok bool) {
	for parts := 1; parts <= 3; parts++ {
		part, ok := r.Name(src, &toks[i])
		if !ok || part == "" {
			return schema, name, i, false
		}
		schema, name = name, part
		i++
		if !toks[i].Is('.') {
			return schema, name, i, true
		}
		i++
	}
	return schema, name, i, false
}

// Name returns the normalised name that a token stands for, as the database stores the name. ok is false if the token
// is no name.
func (r *Rules) Name(src string, t *Token) (name string, ok bool) {
	s := src[t.Start:t.End]
	switch {
	case t.Kind == Word:
		return r.clip(Fold(s)), true
	case t.Kind == Quoted && s[0]|0x20 == 'u':
		return r.clip(unescape(Unquote(s[2:]))), true
	case t.Kind == Quoted && r.TextNames.Is(), t.Kind == Text && r.TextNames.Is() && s[0] == '\'':
		return Fold(Unquote(s)), true
	case t.Kind == Quoted && r.FoldsQuoted.Is(), t.Kind == Text && r.TwoModes.Is() && s[0] == '"':
		return Fold(Unquote(s)), true
	case t.Kind == Quoted:
		return r.clip(Unquote(s)), true
	}
	return "", false
}

// IsName reports whether a token may stand for a name: Name's ok.
func (r *Rules) IsName(src string, t *Token) bool {
	return t.Kind == Word || t.Kind == Quoted || t.Kind == Text &&
		(r.TextNames.Is() && src[t.Start] == '\'' || r.TwoModes.Is() && src[t.Start] == '"')
}

// clip cuts a name as the database does, at a character's start.
func (r *Rules) clip(s string) string {
	if r.MaxName == 0 || len(s) <= r.MaxName {
		return s
	}
	n := r.MaxName
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// MayBeCut reports whether a longer name may have been cut to this one.
func (r *Rules) MayBeCut(name string) bool { return r.MaxName > 0 && len(name)+utf8.UTFMax > r.MaxName }

// Unquote strips the quotes of a name or a plain string and undoubles those inside.
func Unquote(s string) string {
	q, inner := s[len(s)-1], s[1:len(s)-1]
	if q == ']' || strings.IndexByte(inner, q) < 0 {
		return inner
	}
	return strings.ReplaceAll(inner, string([]byte{q, q}), string(q))
}

// unescape reads the \XXXX and \+XXXXXX of a U&"" name. PostgreSQL rejects a malformed escape, so the result for a
// malformed escape doesn't matter.
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
