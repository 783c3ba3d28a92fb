package rewrite

import (
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/rewrite/internal/lex"
)

// A search finds the texts that have to be read: those in which the name of a table may
// stand, anywhere, or that of a setting which changes how statements are read; and those
// with a statement that may write to a table which it doesn't name.
type search struct {
	rules  *lex.Rules
	starts []string // what names begin with
	words  []string // whole words
	code   bool     // a statement may run code: PostgreSQL's DO
	begins pairs    // the first two bytes of all of these, in either case
}

// find has texts found in which a name begins so.
func (s *search) find(start string) {
	s.starts = append(s.starts, start)
	s.begins.add(start)
}

// findWord has texts found in which a whole word is this one.
func (s *search) findWord(word string) {
	s.words = append(s.words, word)
	s.begins.add(word)
}

// findCode has texts found of which a statement runs code.
func (s *search) findCode() {
	s.code = true
	s.begins.add(";")
}

// finds reports whether a text has to be read.
func (s *search) finds(text string) bool {
	if s.code && s.runsCode(text, 0) {
		return true
	}
	last := len(text) - 1
	for i := 0; i < last; i++ {
		if s.begins.has(text[i], text[i+1]) && s.findsAt(text, i) {
			return true
		}
	}
	return last >= 0 && s.findsAt(text, last)
}

func (s *search) findsAt(text string, i int) bool {
	if text[i] == ';' {
		return s.code && s.runsCode(text, i+1)
	}
	for _, start := range s.starts {
		if lex.HasPrefixFold(text[i:], start) {
			return true
		}
	}
	for _, word := range s.words {
		if lex.HasPrefixFold(text[i:], word) && isWhole(text, i, i+len(word)) {
			return true
		}
	}
	return false
}

// maxSkipped is how many bytes of comments before a statement are skipped without
// reading all.
const maxSkipped = 512

// runsCode reports whether at i, where a statement may begin, a DO begins.
func (s *search) runsCode(text string, i int) bool {
	for i < len(text) && lex.IsSpace(text[i]) {
		i++
	}
	if i < len(text) && (text[i] == '-' || text[i] == '/') {
		// A comment may stand behind every semicolon, also behind one in a comment.
		n, ok := s.rules.SkipBlank(text[i:min(len(text), i+maxSkipped)])
		if !ok || n == maxSkipped {
			return true
		}
		i += n
	}
	return i < len(text) && lex.HasPrefixFold(text[i:], "do") && isWhole(text, i, i+len("do"))
}

// isWhole reports whether no name goes on before i or at j.
func isWhole(s string, i, j int) bool {
	return (i == 0 || !lex.IsNamePart(s[i-1])) && (j == len(s) || !lex.IsNamePart(s[j]))
}

// pairs is a set of two bytes: for each first one the bits of those that follow.
type pairs [256][256 / 64]uint64

// add adds what a name may begin with in a statement, in either case: every second
// byte where the name has one byte, or begins with a letter outside of ASCII, and
// those of other such letters, which a locale may fold to its second one.
func (p *pairs) add(name string) {
	const all = ^uint64(0)
	for _, first := range lex.FirstBytes(name) {
		if len(name) == 1 || first >= utf8.RuneSelf {
			p[first] = [4]uint64{all, all, all, all}
			continue
		}
		p[first][2], p[first][3] = all, all
		second := name[1]
		p[first][second/64] |= 1 << (second % 64)
		if second |= 0x20; second >= 'a' && second <= 'z' {
			p[first][second/64] |= 1 << (second % 64)
			second &^= 0x20
			p[first][second/64] |= 1 << (second % 64)
		}
	}
}

func (p *pairs) has(a, b byte) bool { return p[a][b/64]&(1<<(b%64)) != 0 }
