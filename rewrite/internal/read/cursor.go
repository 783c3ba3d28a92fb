package read

import (
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
)

// tok returns the current token, or the token that marks the end of the text.
func (t *Text) tok() *lex.Token { return t.peek(0) }

// peek returns the token n places ahead, or the token that marks the end of the text.
func (t *Text) peek(n int) *lex.Token { return &t.Tokens[min(t.i+n, len(t.Tokens)-1)] }

// isWord reports whether tok is one of the words, unquoted, in any case.
func (t *Text) isWord(tok *lex.Token, words ...string) bool {
	return tok.IsWord(t.Src, words...)
}

// accept steps over the words if they come next, in this order.
func (t *Text) accept(words ...string) bool {
	for n := range words {
		if !t.isWord(t.peek(n), words[n:n+1]...) {
			return false
		}
	}
	t.i += len(words)
	return true
}

func (t *Text) acceptPunct(c byte) bool {
	if !t.tok().Is(c) {
		return false
	}
	t.i++
	return true
}

// step moves n tokens on, at most to the end of the region.
func (t *Text) step(n int) { t.i = min(t.i+n, t.stop) }

// pastPlain returns the last token of the bracket that token i opens if the bracket contains neither words nor
// brackets; otherwise i. It speeds up a search of all tokens for words.
func (t *Text) pastPlain(i int) int {
	if tok := &t.Tokens[i]; tok.Plain {
		return int(tok.Mate)
	}
	return i
}

// maxDepth is how deeply statements may be nested.
const maxDepth = 100

// enter makes the tokens inside the bracket at the current token the region that is read (t.i to t.stop), until the
// caller calls leave with stop. ok is false if the nesting is too deep.
func (t *Text) enter() (stop int, ok bool) {
	if t.depth == maxDepth {
		return 0, false
	}
	stop = t.stop
	t.i, t.stop, t.depth = t.i+1, int(t.tok().Mate), t.depth+1
	return stop, true
}

// leave moves to the token after the bracket, and makes the tokens up to stop the region again.
func (t *Text) leave(stop int) { t.i, t.stop, t.depth = t.stop+1, stop, t.depth-1 }

// fail records why the write can't be read, unless an earlier reason is recorded, and returns false.
func (t *Text) fail(reason advise.Code, at int) bool {
	if t.failure.Reason == advise.Readable {
		t.failure = Failure{reason, int32(at)}
	}
	return false
}

func rangeOf(lo, hi int) lex.Range { return lex.Range{Lo: int32(lo), Hi: int32(hi)} }
