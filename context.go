package sqlfence

import (
	"context"
	"slices"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/nfc"
)

// WithFence returns a context that carries tokens in addition to those of ctx. A token replaces a token of the same
// name. Writes present the token of their table's resource (see [Resource], [Key]).
//
// A write fails with [ErrTokenLimit] if its token's value is over [MaxToken], and with [ErrInvalid] and [ErrNoFence] if
// its token is otherwise invalid. Don't take tokens from untrusted input: with [RowFence] alone any high token passes.
func WithFence(ctx context.Context, tokens ...Token) context.Context {
	held := core.TokensFrom(ctx)
	all := make([]core.Token, len(held), len(held)+len(tokens))
	copy(all, held)
	const few = 16
	var places map[string]int // of names among many tokens, such as the claims of a batch
	if len(held)+len(tokens) > few {
		places = make(map[string]int, len(held)+len(tokens))
		for i := range all {
			places[all[i].Name] = i
		}
	}
	for _, t := range tokens {
		t.Name = nfc.String(t.Name)
		i, found := places[t.Name]
		if places == nil {
			i = slices.IndexFunc(all, func(u core.Token) bool { return u.Name == t.Name })
			found = i >= 0
		}
		switch {
		case found:
			all[i] = core.Token(t)
			continue
		case places != nil:
			places[t.Name] = len(all)
		}
		all = append(all, core.Token(t))
	}
	return core.WithTokens(ctx, all)
}

// FenceFrom returns the token called name in ctx, and whether there is one.
func FenceFrom(ctx context.Context, name string) (Token, bool) {
	name = nfc.String(name)
	for _, t := range core.TokensFrom(ctx) {
		if t.Name == name {
			return Token(t), true
		}
	}
	return Token{}, false
}

// FencesFrom returns all tokens in ctx, in a slice that the caller owns; nil if there are none.
func FencesFrom(ctx context.Context) []Token {
	held := core.TokensFrom(ctx)
	if len(held) == 0 {
		return nil
	}
	tokens := make([]Token, len(held))
	for i, t := range held {
		tokens[i] = Token(t)
	}
	return tokens
}

// Bypass returns a context that sends statements without guards, for migrations and repairs. Observers receive reason
// with every statement that would have been guarded or refused. An empty reason bypasses nothing. [WithoutGuards] is
// for a whole database.
func Bypass(ctx context.Context, reason string) context.Context {
	return core.WithBypass(ctx, reason)
}
