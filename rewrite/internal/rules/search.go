package rules

import (
	"math"
	"slices"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// A search finds the texts that have to be read: those in which the name of a table may
// stand, or that of a setting which changes how statements are read; and those with a
// statement that may write to a table which it doesn't name.
//
// It looks up the words of a text: ASCII letters, digits and _, and what is beyond ASCII.
// A database may cut some words, or fold them by its locale: in 1books and BOOKſ the name
// is looked for at every byte. A name that isn't one word is looked for so in a text that
// has the longest of its words.
type search struct {
	rules   *lex.Rules
	words   wordSet  // of names, and others
	names   prefixes // the tables' by their index; sqlfence's own follow
	spelled bool     // texts with U&"" are found
	code    finding  // texts with a statement that runs code are: PostgreSQL's DO
	anyByte bool     // a name has no word
	divided bool     // a name isn't one word
	all     bool     // any name may be one of a table: all texts are found
	cut     int      // a longer word may be cut to a name
}

// newSearch returns the search for tables of a dialect, and for sqlfence's own.
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

// searchDialect has texts found by what a database has besides tables: U&"\0062ooks" spells any name. In the code of
// DO and CALL a name may be a part of a word; DO names nothing, nor does what changes the encoding of later statements.
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

// noTable is the number of a name that isn't a table's.
const noTable = noName - 1

// find has texts found in which a name may stand.
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

// findWord has texts found with this whole word.
func (s *search) findWord(word string) { s.words.add(word, complete) }

// findNamesWith has texts found with this whole word and a name, be it inside of another
// word.
func (s *search) findNamesWith(word string) { s.words.add(word, part) }

// findSpelled has texts found with a name in U&"", which may be any.
func (s *search) findSpelled() { s.spelled = true }

// findCode finds the texts that a statement runs as code: all of them (complete), or only those
// with a name, be it inside of another word (part).
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

// start returns the part of a table's name that stands in a text however it is
// quoted: in its quotes a name's own are doubled, so up to the first of these.
func start(name string) string {
	for i := range len(name) {
		if c := name[i]; c == '"' || c == '`' || c == '\'' {
			return name[:i+1]
		}
	}
	return name
}

// namedIn finds the name of a table, or of one of sqlfence's own, in some code, be it as a part of
// another word. It returns the table's index, or -1.
func (s *search) namedIn(code string) int {
	if number := s.names.find(code, 0, len(code), noTable); number != noName {
		return int(number)
	}
	return -1
}
