package rewrite

import (
	"sort"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sql/read"
)

// damaged is why a statement is refused if its tokens wouldn't be those that were read once the guard stands among
// them.
const damaged = "with the guard in it the server would read it otherwise; " +
	"put a blank between its words and signs"

// intact reports whether text, which was rendered from a statement with these tokens, has all of them, in their order
// and each as it was, with whole fragments of the guard between them: each bracket closes what it closed, and each
// placeholder stands for the argument that it stood for. Only VALUES, DEFAULT and the brackets of a row may stand in
// comments of the guard's.
func (w *writer) intact(tokens []lex.Token, text string) bool {
	scs := lex.SCSUnknown
	if w.needsSCSOn && !w.isAmbiguous(text) {
		scs = lex.SCSOn
	}
	sent, err := lex.Scan(w.dialect.grammar.Lex, text, scs, w.sent[:0])
	if err != nil {
		return err.Fault == lex.Ambiguous // then it isn't rendered
	}
	w.sent = sent
	inputs := read.Number(w.dialect.grammar.Lex, text, sent)
	passed := w.plan.Params // else the values are written into the text
	if passed && inputs.Count != w.plan.Inputs+len(w.numbers.added) {
		return false
	}
	w.places = w.places[:0]
	at, moved, fragments := 0, int32(0), w.fragments
	for i := range sent {
		for w.isComment(tokens, at) {
			w.places = append(w.places, noPlace)
			at++
		}
		tok := &sent[i]
		for len(fragments) > 0 && tok.Start >= fragments[0].hi {
			moved += fragments[0].hi - fragments[0].lo
			fragments = fragments[1:]
		}
		if len(fragments) > 0 && tok.End > fragments[0].lo {
			if tok.Start < fragments[0].lo || tok.End > fragments[0].hi ||
				fragments[0].op == opAssign && !w.isInSet(tokens[:at]) {
				return false
			}
			continue
		}
		was := &tokens[at]
		if tok.Kind != was.Kind || tok.Start-moved != was.Start || tok.End-moved != was.End {
			return false
		}
		switch {
		case tok.Is(')') || tok.Is(']'):
			if w.places[was.Mate] != tok.Mate {
				return false
			}
		case passed && tok.Kind == lex.Param && int(tok.Mate) != w.numbers.own(int(was.Mate)):
			return false
		}
		w.places = append(w.places, int32(i))
		at++
	}
	return at == len(tokens)
}

// noPlace is that of a token in a comment.
const noPlace = -1

// isComment reports whether the guard puts a token into a comment of its own.
func (w *writer) isComment(tokens []lex.Token, at int) bool {
	if !w.comments || at >= len(tokens) {
		return false
	}
	tok := &tokens[at]
	if tok.Kind != lex.Word && !tok.Is('(') && !tok.Is(')') {
		return false
	}
	n := sort.Search(len(w.edits), func(i int) bool { return w.edits[i].at > tok.Start })
	return n > 0 && n < len(w.edits) && strings.HasSuffix(w.edits[n-1].text, "/*") &&
		strings.HasPrefix(w.edits[n].text, "*/") && w.edits[n].at >= tok.End
}

// isInSet reports whether a SET list goes on behind tokens: an assignment that came to stand in the list of RETURNING
// or ORDER BY would be a condition there, which stores nothing.
func (w *writer) isInSet(tokens []lex.Token) bool {
	for i := len(tokens) - 1; i >= 0; i-- {
		tok := &tokens[i]
		switch {
		case tok.Is(')') || tok.Is(']'):
			i = int(tok.Mate)
		case tok.Is('(') || tok.Is('[') || tok.Is(';'):
			return false
		case tok.Kind != lex.Word || tok.Label:
		case w.isWord(tok, "set") || w.isWord(tok, "update") && i > 0 && w.isWord(&tokens[i-1], "key"):
			return true
		case w.isWord(tok, "from"):
			if i == 0 || !w.isWord(&tokens[i-1], "distinct") {
				return false
			}
		case w.isWord(tok, "where") || w.isWord(tok, "returning") || w.isWord(tok, "order") || w.isWord(tok, "limit"):
			return false
		}
	}
	return false
}

// isWord reports whether a token of the statement is a word, in any case.
func (w *writer) isWord(tok *lex.Token, word string) bool {
	return tok.Kind == lex.Word && lex.EqualFold(w.src[tok.Start:tok.End], word)
}

// A fragment is what an edit has added to a rendered text: the bytes from lo to hi.
type fragment struct {
	lo, hi int32
	op     op
}
