package read

import (
	"strconv"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Inputs describes the placeholders of a text.
type Inputs struct {
	Count    int  // the highest number of a placeholder
	Named    bool // some placeholders have a name, so that their numbers depend on their order
	Numbered bool // some placeholders have a number
	Bare     int  // how many placeholders have neither name nor number, such as ?

	counted bool
}

// OnlyBare reports whether the text has placeholders, and all are bare: numbered from 1 in the order of the text.
func (in Inputs) OnlyBare() bool { return in.Bare > 0 && !in.Named && !in.Numbered }

// NumberInputs stores each placeholder's number in the field Mate of its token.
func (t *Text) NumberInputs() Inputs {
	if t.inputs.counted {
		return t.inputs
	}
	in := Inputs{counted: true}
	var names map[string]int
	for i := range t.Tokens {
		tok := &t.Tokens[i]
		switch {
		case tok.Kind != lex.Param:
			continue
		case isBare(tok):
			in.Count++
			in.Bare++
			tok.Mate = int32(in.Count)
			continue
		case tok.Mate > 0: // it was read with the token
			in.Count, in.Numbered = max(in.Count, int(tok.Mate)), true
			continue
		}
		s := t.Src[tok.Start:tok.End]
		n, numbered := 0, s[0] == '?' || !t.grammar.Lex.Variables.Is()
		if numbered {
			var err error
			n, err = strconv.Atoi(s[1:])
			numbered = err == nil // else it is too large
		}
		switch {
		case numbered:
			in.Count = max(in.Count, n)
			in.Numbered = true
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

// EachBare calls f for each bare placeholder among the tokens of s, with the offset after the placeholder and the
// placeholder's number. The caller must call [Text.NumberInputs] first.
func (t *Text) EachBare(s lex.Range, f func(at int32, number int)) {
	if t.inputs.Bare == 0 {
		return
	}
	for i := s.Lo; i < s.Hi; i++ {
		if tok := &t.Tokens[i]; isBare(tok) {
			f(tok.End, int(tok.Mate))
		}
	}
}

func isBare(tok *lex.Token) bool { return tok.Kind == lex.Param && tok.End-tok.Start == 1 }
