package sqlfence

import (
	"context"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/nfc"
)

type (
	fencesKey struct{}
	bypassKey struct{}
)

// WithFence returns a context that carries tokens besides those ctx carries
// already; a token replaces one of the same name. Every write on a registered
// table that runs with the context is fenced with the token of that table's
// resource (see [Resource], [Key]). Names are brought into Unicode's normalization
// form C.
//
// Tokens are checked when a write needs them: an invalid one refuses the write
// with [ErrNoFence] or [ErrTokenLimit], it is never skipped. Whether a token was ever
// issued is known to the [Ledger] alone; on a table with [RowFence] and no Ledger a
// made-up one passes if it is high enough. Don't put a token from outside into a
// context that writes to such a table.
func WithFence(ctx context.Context, tokens ...Token) context.Context {
	held := fencesFrom(ctx)
	all := make([]Token, len(held), len(held)+len(tokens))
	copy(all, held)
	for _, t := range tokens {
		t.Name = nfc.String(t.Name)
		if i := slices.IndexFunc(all, func(u Token) bool { return u.Name == t.Name }); i >= 0 {
			all[i] = t
		} else {
			all = append(all, t)
		}
	}
	return context.WithValue(ctx, fencesKey{}, all)
}

// FenceFrom returns the token called name that ctx carries, and whether there
// is one. The name may be in any of Unicode's normalization forms.
func FenceFrom(ctx context.Context, name string) (Token, bool) {
	name = nfc.String(name)
	for _, t := range fencesFrom(ctx) {
		if t.Name == name {
			return t, true
		}
	}
	return Token{}, false
}

// Bypass returns a context whose statements reach the database as they were
// written, unguarded: for migrations and repairs. The reason is shown to the
// observer with every statement that it let through. An empty reason bypasses
// nothing, so that a forgotten one fails closed.
func Bypass(ctx context.Context, reason string) context.Context {
	return context.WithValue(ctx, bypassKey{}, reason)
}

func fencesFrom(ctx context.Context) []Token {
	tokens, _ := ctx.Value(fencesKey{}).([]Token)
	return tokens
}

// keyedFences returns the tokens of the rows of resource: those named
// resource + "/" + key.
func keyedFences(ctx context.Context, resource string) (found []Token) {
	for _, t := range fencesFrom(ctx) {
		if rest, ok := strings.CutPrefix(t.Name, resource); ok && strings.HasPrefix(rest, "/") {
			found = append(found, t)
		}
	}
	return found
}

func bypassReason(ctx context.Context) (string, bool) {
	reason, _ := ctx.Value(bypassKey{}).(string)
	return reason, reason != ""
}
