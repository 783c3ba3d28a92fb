package lex

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// PostgreSQL folds ASCII letters in unquoted words. With a single-byte encoding it also folds other letters, by the
// locale: BÜCHER is bücher. A statement doesn't show the encoding, so such a word has two possible names.
//
// Source: downcase_identifier in PostgreSQL's src/backend/parser/scansup.c.

// Fold folds ASCII letters to lower case, as all databases do. It doesn't allocate if the text has no capital letters.
func Fold(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= 'A' && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				b[i] = lowerByte(b[i])
			}
			return string(b)
		}
	}
	return s
}

// EqualFold compares s with a lower-case name, ASCII letters in either case.
func EqualFold(s, name string) bool {
	if len(s) != len(name) {
		return false
	}
	for i := 0; i < len(s); i++ {
		if lowerByte(s[i]) != lowerByte(name[i]) {
			return false
		}
	}
	return true
}

// HasPrefixFold reports whether s begins with a name, its letters in either case and
// folded by any locale.
func HasPrefixFold(s, name string) bool {
	for i := 0; i < len(name); i++ {
		switch {
		case i == len(s):
			return false
		case (s[i]|name[i])&0x80 != 0:
			return hasPrefixFoldRunes(s[i:], name[i:])
		case lowerByte(s[i]) != lowerByte(name[i]):
			return false
		}
	}
	return true
}

// hasPrefixFoldRunes is HasPrefixFold for more than ASCII.
func hasPrefixFoldRunes(s, name string) bool {
	for name != "" && s != "" {
		c, n := utf8.DecodeRuneInString(s)
		want, m := utf8.DecodeRuneInString(name)
		if c != want && FoldRune(c) != FoldRune(want) {
			return false
		}
		s, name = s[n:], name[m:]
	}
	return name == ""
}

// FoldsByLocale reports whether [Rules.FoldedByLocale] may find a word in the text.
func (r *Rules) FoldsByLocale(src string) bool { return r.LocaleFolds.Is() && !isASCII(src) }

// FoldedByLocale returns the name of a word that the database's locale may fold to a different name; ok is false for
// any other token.
func (r *Rules) FoldedByLocale(src string, t *Token) (name string, ok bool) {
	if !r.LocaleFolds.Is() || t.Kind != Word && !r.FoldsQuoted.Is() || isASCII(src[t.Start:t.End]) {
		return "", false
	}
	return r.Name(src, t)
}

// FirstBytes returns the bytes with which a name may begin in a statement.
func FirstBytes(name string) (first []byte) {
	c, _ := utf8.DecodeRuneInString(name)
	first = append(first, name[0])
	add := func(c rune) { first = append(first, utf8.AppendRune(nil, c)[0]) }
	for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
		add(f)
	}
	switch {
	case FoldRune(c) != 'i':
	case c < utf8.RuneSelf:
		add('İ')
	default:
		add('i')
		add('I')
	}
	return first
}

// FoldRune returns the same rune for all letters that some locale may fold together: both cases of a letter, and the
// Turkish İ and i.
func FoldRune(c rune) rune { return unicode.ToLower(unicode.ToUpper(c)) }

// foldsByLocale reports whether an unquoted word may be folded to another name
// than ASCII folding makes of it.
func foldsByLocale(word string) bool {
	return strings.IndexFunc(word, func(c rune) bool { return c >= utf8.RuneSelf && c != unicode.ToLower(c) }) >= 0
}

func isASCII(s string) bool {
	const top = 0x8080808080808080
	for ; len(s) >= 8; s = s[8:] {
		// The compiler makes one load of these.
		b := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		if b&top != 0 {
			return false
		}
	}
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c |= 0x20
	}
	return c
}
