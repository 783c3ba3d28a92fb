package rules

import (
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// A search finds the texts that must be parsed. These are texts with the possible name of a table, texts with the name
// of a setting that changes how statements are read, and texts with a statement that may write to an unnamed table.
//
// The search looks up the words of a text: ASCII letters, digits and _, and all bytes beyond ASCII. A database reads
// some words differently: it may split 1books into 1 and books, or equate BOOKſ with BOOKS in its locale. So in a word
// that begins with a digit or has a byte beyond ASCII, the name is searched at every byte. A name of several
// words is searched at every byte of a text that contains the longest of these words.
type search struct {
	rules   *lex.Rules
	words   wordSet  // words of names, and keywords
	names   prefixes // the names of the tables, numbered by the tables' indexes; sqlfence's own tables follow
	spelled bool     // finds texts with U&"", which can spell any name
	code    finding  // finds texts with a statement that runs code, such as PostgreSQL's DO
	anyByte bool     // some name contains no word, so names are searched at every byte
	divided bool     // some name consists of several words
	all     bool     // a pattern may cover any name: all texts are found
	cut     int      // the database may cut words of more bytes
}

// newSearch returns the search for tables of a dialect, and for sqlfence's tables.
func newSearch(d *render.Dialect, tables []render.Registered) *search {
	s := &search{rules: d.Grammar.Lex, cut: math.MaxInt}
	for i := range tables {
		if tables[i].Pattern {
			s.all = true
			continue
		}
		s.find(tables[i].Name, int32(i))
		if c := tables[i].ClaimOf.Name; c != "" {
			s.find(c, noTable)
		}
	}
	for i, own := range render.OwnTables {
		s.find(own, int32(len(tables)+i))
	}
	s.searchOwn(tables)
	s.searchDialect(d, tables)
	return s
}

// searchDialect makes the search find texts by features of a database. U&"\0062ooks" can spell any name, and in the
// code of DO and CALL a name may be a part of a word. A DO is found even without a name, and so is a statement that
// changes the encoding of later statements.
func (s *search) searchDialect(d *render.Dialect, tables []render.Registered) {
	if d.Grammar.Lex.UnicodeEscapes.Is() {
		s.findSpelled()
	}
	if d.Grammar.Code.Is() {
		s.findNamesWith("call")
		names := complete
		if len(tables) == 0 {
			names = part
		}
		s.findCode(names)
	}
	if len(tables) == 0 {
		return
	}
	for _, name := range slices.Concat(d.Guard.DefiningTables, d.Guard.Names) {
		s.find(name, noTable)
	}
	for _, word := range d.Guard.Words {
		s.findWord(word)
	}
	if slices.ContainsFunc(tables, func(t render.Registered) bool { return t.Locks() }) {
		for _, word := range d.Guard.LockWords {
			s.findWord(word)
		}
	}
}

// noTable is the number of a searched name that is no table's name.
const noTable = noName - 1

// find makes the search find texts that may contain a name.
func (s *search) find(name string, number int32) {
	s.names.add(start(name), number)
	from, to := longestWord(name)
	switch {
	case from == to:
		s.anyByte = true
	case to-from == len(name):
		s.words.add(name, complete)
	default:
		s.divided = true
		s.words.add(name[from:to], part)
	}
	if to == len(name) && s.rules.MayBeCut(name) {
		s.cut = min(s.cut, to-from)
	}
}

// findWord makes the search find texts with this whole word.
func (s *search) findWord(word string) { s.words.add(word, complete) }

// findNamesWith makes the search find texts with this whole word and a name, even inside a longer word.
func (s *search) findNamesWith(word string) { s.words.add(word, part) }

// findSpelled makes the search find texts with a name in U&"", which can spell any name.
func (s *search) findSpelled() { s.spelled = true }

// findCode makes the search find texts that a statement runs as code: all such texts (complete), or only texts with a
// name, even inside a longer word (part).
func (s *search) findCode(find finding) { s.code = find }

// longestWord returns where the longest word of a name begins and ends.
func longestWord(name string) (from, to int) {
	for i := 0; i < len(name); i++ {
		begin := i
		for i < len(name) && isWordByte(name[i]) {
			i++
		}
		if i-begin > to-from {
			from, to = begin, i
		}
	}
	return from, to
}

// start returns the part of a table's name that every quoted form of the name contains. Quotes inside a quoted name are
// doubled, so this part ends at the name's first quote.
func start(name string) string {
	for i := range len(name) {
		if c := name[i]; c == '"' || c == '`' || c == '\'' {
			return name[:i+1]
		}
	}
	return name
}

// namedIn finds the name of a registered table or of an sqlfence table in code, even inside a longer word. It returns
// the table's index, or -1.
func (s *search) namedIn(code string) int {
	if number := s.names.find(code, 0, len(code), noTable); number != noName {
		return int(number)
	}
	return -1
}

// finds reports whether a text must be read. A nil search finds no text.
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

// anywhere reports whether a text contains a name at any position.
func (s *search) anywhere(text string) bool {
	return s.names.find(text, 0, len(text), noName) != noName
}

// wordIn looks up the words of a text. Most words need no look-up: no word of the set has the same length and the same
// first eight bytes.
func (s *search) wordIn(text string) (find finding) {
	if len(text) < 8 {
		return s.wordInShort(text)
	}
	begin := -1       // where a word begins that continues in the next bytes
	isWide := false   // the word contains bytes beyond ASCII
	var before uint64 // the bits names of the previous 64 bytes
	for base := 0; base < len(text) && find != complete; base += 64 {
		names, wide := nameBytes(text, base)
		shifted := names<<1 | before>>63
		begins, ends := names&^shifted, shifted&^names
		limit := s.cut // longer words are searched for names
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

// wordInShort is wordIn for a text of less than eight bytes.
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

// word looks up text[i:j]. If a database may cut or fold this text, word looks for names inside the text.
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

// isClear reports whether all databases read a word alike: the word is ASCII, and consists of digits if the first byte
// is a digit.
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

// maxSkipped is the number of bytes of comments before a statement that are skipped without reading the whole text.
const maxSkipped = 512

// runsCode reports whether a DO begins at i, where a statement may begin.
func (s *search) runsCode(text string, i int) bool {
	for i < len(text) && lex.IsSpace(text[i]) {
		i++
	}
	if i < len(text) && (text[i] == '-' || text[i] == '/') {
		// Every semicolon may precede a comment, even a semicolon inside a comment.
		n, ok := s.rules.SkipBlank(text[i:min(len(text), i+maxSkipped)])
		if !ok || n == maxSkipped {
			return true
		}
		i += n
	}
	return i < len(text) && lex.HasPrefixFold(text[i:], "do") && isWhole(text, i, i+len("do"))
}

// isWhole reports whether s[i:j] is not a part of a longer name.
func isWhole(s string, i, j int) bool {
	return (i == 0 || !lex.IsNamePart(s[i-1])) && (j == len(s) || !lex.IsNamePart(s[j]))
}
