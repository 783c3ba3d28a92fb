package rewrite

import "github.com/sqlfence/sqlfence/rewrite/internal/lex"

// finds reports whether a text has to be read.
func (s *search) finds(text string) bool {
	whole := s.anyByte // all of the text has been searched for names
	if whole && s.anywhere(text) {
		return true
	}
	for i, find := 0, s.codeAt(text, 0); ; i, find = s.next(text, i) {
		if find == complete || find == part && !whole && s.anywhere(text) {
			return true
		}
		whole = whole || find == part
		if i == len(text) {
			return false
		}
	}
}

// next returns what is found next from i on, and the place behind it.
func (s *search) next(text string, i int) (behind int, find finding) {
	for i < len(text) && find == absent {
		begin := i
		for i < len(text) && plain[text[i]] {
			i++
		}
		switch {
		case i < len(text) && unclear[text[i]], i > begin && (lex.IsDigit(text[begin]) || i-begin > s.cut):
			for i < len(text) && lex.IsNamePart(text[i]) {
				i++
			}
			find = s.unclear(text, begin, i)
		case i > begin:
			find = s.words.find(text, begin, i)
		default:
			if s.marks[text[i]] {
				find = s.mark(text, i)
			}
			i++
		}
	}
	return i, find
}

// anywhere reports whether a name stands anywhere in a text.
func (s *search) anywhere(text string) bool {
	return s.names.find(text, 0, len(text), nobody) != nobody
}

// unclear looks up text[i:j], a word that a database may cut or fold in another way.
func (s *search) unclear(text string, i, j int) finding {
	find := s.words.find(text, i, j)
	switch {
	case find == complete, j-i <= s.cut && !begins(text[i:j]): // 1000, $1
		return find
	case s.divided:
		return part
	case s.names.find(text, i, j, nobody) != nobody:
		return complete
	}
	return find
}

// begins reports whether a name can begin in a word.
func begins(word string) bool {
	for i := range len(word) {
		if lex.IsNameStart(word[i]) {
			return true
		}
	}
	return false
}

// mark looks at a semicolon, behind which code may be run, or at the & of U&"".
func (s *search) mark(text string, i int) finding {
	if text[i] == ';' {
		return s.codeAt(text, i+1)
	}
	if i > 0 && text[i-1]|0x20 == 'u' && i+1 < len(text) && text[i+1] == '"' {
		return complete
	}
	return absent
}

// codeAt looks for a statement at i that runs code.
func (s *search) codeAt(text string, i int) finding {
	if s.marks[';'] && s.runsCode(text, i) {
		return s.code
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

// plain are the bytes of words that any database reads alike, unless they begin with a
// digit; unclear are the other ones of names.
var plain, unclear = func() (plain, unclear [256]bool) {
	for c := range plain {
		isName := lex.IsNamePart(byte(c))
		plain[c] = isName && c < 0x80 && c != '$'
		unclear[c] = isName && !plain[c]
	}
	return plain, unclear
}()
