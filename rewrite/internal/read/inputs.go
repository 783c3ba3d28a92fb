package read

import (
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/rewrite/internal/lex"
)

// Inputs is what is known of the placeholders of a text.
type Inputs struct {
	Count int  // the highest number
	Named bool // some have a name, so that their numbers depend on their order
	Bare  int  // how many have neither name nor number: SQLite's ?

	numbered bool
}

// NumberInputs gives each placeholder its number: Token.Mate.
func (t *Text) NumberInputs() Inputs {
	if t.inputs.numbered {
		return t.inputs
	}
	in := Inputs{numbered: true}
	var names map[string]int
	for i := range t.Tokens {
		tok := &t.Tokens[i]
		if tok.Kind != lex.Param {
			continue
		}
		s := t.Src[tok.Start:tok.End]
		n, numbered := 0, !isBare(tok) && (s[0] == '?' || !t.grammar.namedParams)
		if numbered {
			var err error
			n, err = strconv.Atoi(s[1:])
			numbered = err == nil // else it is too large
		}
		switch {
		case isBare(tok):
			in.Count++
			in.Bare++
			n = in.Count
		case numbered:
			in.Count = max(in.Count, n)
		default:
			in.Named = true
			if names == nil {
				names = make(map[string]int)
			}
			if n = names[s]; n == 0 {
				in.Count++
				n = in.Count
				names[s] = n
			}
		}
		tok.Mate = int32(n)
	}
	t.inputs = in
	return in
}

// EachBare calls f for each bare placeholder, with the offset behind it and its
// number. [Text.NumberInputs] comes before it.
func (t *Text) EachBare(f func(at int32, number int)) {
	for i := 0; i < len(t.Tokens) && t.inputs.Bare > 0; i++ {
		if tok := &t.Tokens[i]; isBare(tok) {
			f(tok.End, int(tok.Mate))
		}
	}
}

func isBare(tok *lex.Token) bool { return tok.Kind == lex.Param && tok.End-tok.Start == 1 }

// Source returns the text of s, bare placeholders with their numbers.
func (t *Text) Source(s Span) string {
	from, to := t.Tokens[s.Lo].Start, t.Tokens[s.Hi-1].End
	if t.inputs.Bare == 0 {
		return t.Src[from:to]
	}
	var b strings.Builder
	for i := s.Lo; i < s.Hi; i++ {
		tok := &t.Tokens[i]
		if isBare(tok) {
			b.WriteString(t.Src[from:tok.End])
			b.WriteString(strconv.Itoa(int(tok.Mate)))
			from = tok.End
		}
	}
	b.WriteString(t.Src[from:to])
	return b.String()
}
