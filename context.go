package sqlfence

import (
	"context"
	"slices"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/nfc"
)

// WithFence returns a context that carries tokens in addition to those of ctx; a
// token replaces one of the same name. Every write on a registered table that runs
// with the context is guarded by the token of that table's resource (see [Resource],
// [Key]). Names are brought into Unicode's normalization form C.
//
// A transaction that was begun with a context that carries tokens uses them for the statements with
// a context that carries none, as in Tx.Exec; see the package's documentation.
//
// Tokens are checked when a write needs them. An invalid token is never skipped: the
// write is refused, with [ErrTokenLimit] for a value over [MaxToken], else with an error
// that is both [ErrInvalid] and [ErrNoFence]. Only the [Ledger] knows whether a token
// was ever issued; on a table with [RowFence] and no Ledger a made-up token passes if
// it is high enough. Don't put a token from outside into a context that writes to such
// a table.
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

// FenceFrom returns the token called name that ctx carries, and whether there
// is one. The name may be in any of Unicode's normalization forms.
func FenceFrom(ctx context.Context, name string) (Token, bool) {
	name = nfc.String(name)
	for _, t := range core.TokensFrom(ctx) {
		if t.Name == name {
			return Token(t), true
		}
	}
	return Token{}, false
}

// FencesFrom returns all tokens that ctx carries, to pass them on to another process. The slice is the caller's own; it
// is nil if there are none.
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

// Bypass returns a context that sends statements as they were written, without guards. It is for migrations
// and repairs. Observers receive the reason with every statement that would have been guarded or refused. If
// reason is empty, the guards stay in force, and a refusal reports the empty reason. [WithoutGuards] does the
// same for a whole database.
func Bypass(ctx context.Context, reason string) context.Context {
	return core.WithBypass(ctx, reason)
}
