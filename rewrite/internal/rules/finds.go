package rules

import (
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// finds reports whether a text has to be read. A nil search finds none.
func (s *search) finds(text string) bool {
	if s == nil {
		return false
	}
	if s.all {
		return true
	}
	find := s.codeIn(text)
	if find != complete {
		find = max(find, s.spelledIn(text), s.wordIn(text))
	}
	return find == complete || (find == part || s.anyByte) && s.anywhere(text)
}

// anywhere reports whether a name stands anywhere in a text.
func (s *search) anywhere(text string) bool {
	return s.names.find(text, 0, len(text), noName) != noName
}

// wordIn looks up the words of a text. Most need no look-up: no word of the set has their
// length and begins with the same eight bytes.
func (s *search) wordIn(text string) (find finding) {
	if len(text) < 8 {
		return s.wordInShort(text)
	}
	begin := -1       // of a word that goes on in the next bytes
	isWide := false   // some have bytes beyond ASCII
	var before uint64 // the bytes of words before these
	for base := 0; base < len(text) && find != complete; base += 64 {
		names, wide := nameBytes(text, base)
		shifted := names<<1 | before>>63
		begins, ends := names&^shifted, shifted&^names
		limit := s.cut // a longer word is looked at
		if isWide = wide || isWide && begin >= 0; isWide {
			limit = 0
		}
		for before = names; ends != 0; ends &= ends - 1 {
			if begin < 0 {
				begin = base + bits.TrailingZeros64(begins)
				begins &= begins - 1
			}
			end := base + bits.TrailingZeros64(ends)
			n := end - begin
			first := uint64(0)
			if behind := begin + 8 - len(text); behind <= 0 {
				first = firstBytes(eight(text, begin), n)
			} else {
				first = firstBytes(eight(text, len(text)-8)>>(8*behind), n)
			}
			if n > limit || s.words.mayHave(first, n) || text[begin] <= '9' && !isNumber(first, n) {
				find = max(find, s.word(text, begin, end))
			}
			begin = -1
		}
		if begins != 0 {
			begin = base + bits.TrailingZeros64(begins)
		}
	}
	if begin >= 0 && find != complete {
		find = max(find, s.word(text, begin, len(text)))
	}
	return find
}

// wordInShort is wordIn for less than eight bytes.
func (s *search) wordInShort(text string) (find finding) {
	for i := 0; i < len(text); i++ {
		begin := i
		for i < len(text) && isWordByte(text[i]) {
			i++
		}
		if begin < i {
			find = max(find, s.word(text, begin, i))
		}
	}
	return find
}

// word looks up text[i:j], and names in it if a database may cut or fold it.
func (s *search) word(text string, i, j int) finding {
	return max(s.words.find(text, i, j), s.unclear(text, i, j))
}

// unclear looks for names in text[i:j] if a database may cut or fold it.
func (s *search) unclear(text string, i, j int) finding {
	switch {
	case j-i <= s.cut && isClear(text[i:j]):
		return absent
	case s.divided:
		return part
	case s.names.find(text, i, j, noName) != noName:
		return complete
	}
	return absent
}

// isClear reports whether all databases read a word alike: it has no byte beyond ASCII,
// and if it begins with a digit, then it is a number.
func isClear(word string) bool {
	digits := word[0] <= '9'
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf || digits && word[i] > '9' {
			return false
		}
	}
	return true
}

// spelledIn looks for a name in U&"".
func (s *search) spelledIn(text string) finding {
	for i := 0; s.spelled; i++ {
		next := strings.IndexByte(text[i:], '&')
		if next < 0 {
			break
		}
		i += next
		if i > 0 && text[i-1]|0x20 == 'u' && i+1 < len(text) && text[i+1] == '"' {
			return complete
		}
	}
	return absent
}

// codeIn looks for a statement that runs code.
func (s *search) codeIn(text string) finding {
	for i := 0; s.code != absent; i++ {
		if s.runsCode(text, i) {
			return s.code
		}
		next := strings.IndexByte(text[i:], ';')
		if next < 0 {
			break
		}
		i += next
	}
	return absent
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
