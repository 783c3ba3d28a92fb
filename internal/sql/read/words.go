package read

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// role is what a word is where it stands as a keyword.
type role uint8

const (
	operand  role = iota // none of these: mostly a name
	clause               // it begins a clause, or a part of one
	operator             // it stands between two operands
	postfix              // it stands behind an operand
	prefix               // it stands before an operand
	head                 // SELECT: before the first operand
	opening              // CASE
	between              // WHEN, THEN, ELSE
	closing              // END
)

// roles are the words that have one in any database.
var roles = [...]string{
	clause: "from where group having union intersect except order limit on returning into using join " +
		"window offset fetch for with do",
	operator: "and or in is collate between escape like glob regexp match ilike to overlaps",
	postfix:  "isnull notnull",
	prefix:   "not distinct all symmetric asymmetric lateral only variadic",
	head:     "select",
	opening:  "case",
	between:  "when then else",
	closing:  "end",
}

// maxWord is the length of the longest of these words.
const maxWord = len("asymmetric")

// A keyword is a word with a role.
type keyword struct {
	word string
	role role
	name bool // where an operand is wanted, it is a name
}

// newWords returns a grammar's words by their length and first letter.
func newWords(g *Grammar) (by [maxWord + 1][26][]keyword) {
	omitted, named := strings.Fields(g.WithoutWords), strings.Fields(g.NameWords)
	own := map[role]string{operator: g.Operators, prefix: g.Prefixes}
	for r, words := range roles {
		for _, w := range strings.Fields(words + " " + own[role(r)]) {
			if slices.Contains(omitted, w) {
				continue
			}
			some := &by[len(w)][w[0]-'a']
			*some = append(*some, keyword{w, role(r), slices.Contains(named, w)})
		}
	}
	return by
}

// keyword returns what is known of a word, or nil.
func (g *Grammar) keyword(word string) *keyword {
	first := word[0] | 0x20 - 'a'
	if len(word) > maxWord || first >= 26 {
		return nil
	}
	some := g.words[len(word)][first]
	for i := range some {
		if lex.EqualFold(word, some[i].word) {
			return &some[i]
		}
	}
	return nil
}
