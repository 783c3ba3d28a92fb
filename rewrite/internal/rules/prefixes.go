package rules

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// prefixes is a tree of names, byte by byte. It finds names in either case, folded by any locale, anywhere in a text,
// even inside a longer word. The search time depends on the length of the names, not on their number.
type prefixes struct {
	first [256]bool        // the first bytes of names, in every form that a text may have them
	next  map[uint64]int32 // the next node, by a node and a byte
	ends  []int32          // for each node, the number of the name that ends there, or noName
}

// noName means that no name was found.
const noName = math.MaxInt32

// add adds a name with a number. Of names that are alike the lowest number stays.
func (p *prefixes) add(name string, number int32) {
	if p.next == nil {
		p.next, p.ends = make(map[uint64]int32), []int32{noName}
	}
	for _, c := range lex.FirstBytes(name) {
		p.first[c] = true
	}
	name = strings.Map(lex.FoldRune, name)
	node := int32(0)
	for i := range len(name) {
		next, ok := p.next[edge(node, name[i])]
		if !ok {
			next = int32(len(p.ends))
			p.ends = append(p.ends, noName)
			p.next[edge(node, name[i])] = next
		}
		node = next
	}
	p.ends[node] = min(p.ends[node], number)
}

func edge(node int32, c byte) uint64 { return uint64(node)<<8 | uint64(c) }

// find searches text from lo to hi for the first position with a name that has a number below limit. It returns the
// lowest number of the names at this position, or noName. The names may end after hi.
func (p *prefixes) find(text string, lo, hi int, limit int32) int32 {
	for i := lo; i < hi; i++ {
		if p.first[text[i]] {
			if number := p.at(text[i:]); number < limit {
				return number
			}
		}
	}
	return noName
}

// at returns the lowest number of the names that a text begins with, or noName.
func (p *prefixes) at(text string) int32 {
	number, node, ok := int32(noName), int32(0), true
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if c >= 'A' && c <= 'Z' {
				c |= 0x20
			}
			if node, ok = p.next[edge(node, c)]; !ok {
				return number
			}
			i++
		} else {
			r, n := utf8.DecodeRuneInString(text[i:])
			var folded [utf8.UTFMax]byte
			for _, c := range folded[:utf8.EncodeRune(folded[:], lex.FoldRune(r))] {
				if node, ok = p.next[edge(node, c)]; !ok {
					return number
				}
			}
			i += n
		}
		number = min(number, p.ends[node])
	}
	return number
}
