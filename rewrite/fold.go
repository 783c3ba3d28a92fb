package rewrite

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PostgreSQL folds ASCII letters in words that aren't quoted, and in a database
// of a single-byte encoding the other letters, too, by the database's locale: in
// LATIN1, BÜCHER is bücher. What the encoding is can't be seen in a statement.
//
// Source: downcase_identifier in PostgreSQL's src/backend/parser/scansup.c.

// foldRune returns the same for all letters that some locale may fold to one:
// beside both cases of a letter those are, in Turkish, İ and i.
func foldRune(c rune) rune { return unicode.ToLower(unicode.ToUpper(c)) }

// hasPrefixFold reports whether s begins with a name, in either case.
func hasPrefixFold(s, name string) bool {
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

// hasPrefixFoldRunes is hasPrefixFold for more than ASCII.
func hasPrefixFoldRunes(s, name string) bool {
	for name != "" && s != "" {
		c, n := utf8.DecodeRuneInString(s)
		want, m := utf8.DecodeRuneInString(name)
		if c != want && foldRune(c) != foldRune(want) {
			return false
		}
		s, name = s[n:], name[m:]
	}
	return name == ""
}

// firstBytes returns the bytes with which a name may begin in a statement.
func firstBytes(name string) (first []byte) {
	c, _ := utf8.DecodeRuneInString(name)
	first = append(first, name[0])
	add := func(c rune) { first = append(first, utf8.AppendRune(nil, c)[0]) }
	for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
		add(f)
	}
	if foldRune(c) == 'i' {
		add('İ')
	}
	return first
}

// foldsByLocale reports whether an unquoted word may be folded to another name
// than ASCII folding makes of it.
func foldsByLocale(word string) bool {
	return strings.IndexFunc(word, func(c rune) bool { return c >= utf8.RuneSelf && c != unicode.ToLower(c) }) >= 0
}

// foldsClearly refuses a text with a word that, by the database's locale, may or
// may not be a name that the rules know.
func (r *reader) foldsClearly() bool {
	if r.dialect != Postgres {
		return true
	}
	for i, t := range r.toks {
		if t.kind != word || isASCII(r.src[t.start:t.end]) {
			continue
		}
		name, _ := normal(r.dialect, r.src, t)
		mayBe := func(known string) bool {
			return name != known && len(known) > 0 && hasPrefixFoldRunes(name, known) && hasPrefixFoldRunes(known, name)
		}
		for k := range r.tables {
			if names := r.tables[k].names(); slices.ContainsFunc(names[:], mayBe) {
				return r.refuse(k, i, foldsUnclearly)
			}
		}
		if own := slices.IndexFunc(ownTables[:], mayBe); own >= 0 {
			return r.refuse(len(r.tables)+own, i, foldsUnclearly)
		}
	}
	return true
}

const foldsUnclearly = "whether PostgreSQL takes this word for a name that sqlfence guards depends on the database's encoding; write it in double quotes"

// names returns the names that the table's rules know; some may be empty.
func (t *Table) names() [8]string {
	return [...]string{t.Schema, t.Name, t.FenceColumn, t.Key, t.Serial, t.Lock.By, t.Lock.Since, t.Lock.Expiry}
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
