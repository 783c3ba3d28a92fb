package read

import (
	"strconv"

	"github.com/sqlfence/sqlfence/rewrite/internal/lex"
)

// Inputs is what is known of the placeholders of a text.
type Inputs struct {
	Count    int  // the highest number
	Named    bool // some have a name, so that their numbers depend on their order
	Numbered bool // some have a number
	Bare     int  // how many have neither name nor number: SQLite's ?

	counted bool
}

// OnlyBare reports whether the text has placeholders, and all of them are bare ones: each
// has the number of the one before it and 1.
func (in Inputs) OnlyBare() bool { return in.Bare > 0 && !in.Named && !in.Numbered }

// NumberInputs gives each placeholder its number: Token.Mate.
func (t *Text) NumberInputs() Inputs {
	if t.inputs.counted {
		return t.inputs
	}
	in := Inputs{counted: true}
	var names map[string]int
	for i := range t.Tokens {
		tok := &t.Tokens[i]
		if tok.Kind != lex.Param {
			continue
		}
		if isBare(*tok) {
			in.Count++
			in.Bare++
			tok.Mate = int32(in.Count)
			continue
		}
		s := t.Src[tok.Start:tok.End]
		n, err := strconv.Atoi(s[1:])
		switch {
		case err == nil && (s[0] == '?' || !t.grammar.namedParams):
			in.Count = max(in.Count, n)
			in.Numbered = true
		default:
			in.Named = true
			if names == nil {
				names = make(map[string]int)
			}
			if names[s] == 0 {
				in.Count++
				names[s] = in.Count
			}
			n = names[s]
		}
		tok.Mate = int32(n)
	}
	t.inputs = in
	return in
}

// EachBare calls f for each bare placeholder among the tokens of s, with the offset
// behind it and its number. [Text.NumberInputs] comes before it.
func (t *Text) EachBare(s Span, f func(at int32, number int)) {
	if t.inputs.Bare == 0 {
		return
	}
	for _, tok := range t.Tokens[s.Lo:s.Hi] {
		if isBare(tok) {
			f(tok.End, int(tok.Mate))
		}
	}
}

func isBare(tok lex.Token) bool { return tok.Kind == lex.Param && tok.End-tok.Start == 1 }

// Source returns the text of s.
func (t *Text) Source(s Span) string {
	return t.Src[t.Tokens[s.Lo].Start:t.Tokens[s.Hi-1].End]
}
