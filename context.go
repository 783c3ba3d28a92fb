package sqlfence

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/nfc"
	"github.com/sqlfence/sqlfence/internal/verify"
)

type (
	tokensKey struct{}
	bypassKey struct{}
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
	held := tokensFrom(ctx)
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
	return context.WithValue(ctx, tokensKey{}, all)
}

// FenceFrom returns the token called name that ctx carries, and whether there
// is one. The name may be in any of Unicode's normalization forms.
func FenceFrom(ctx context.Context, name string) (Token, bool) {
	name = nfc.String(name)
	for _, t := range tokensFrom(ctx) {
		if t.Name == name {
			return t, true
		}
	}
	return Token{}, false
}

// Bypass returns a context that sends statements to the database as they were written, unguarded:
// for migrations and repairs. The observer gets the reason with every statement that would have
// been guarded or refused. With an empty reason nothing is bypassed, so a forgotten reason fails
// closed, and the refusal says so. [WithBypass] does so for a whole database.
func Bypass(ctx context.Context, reason string) context.Context {
	return context.WithValue(ctx, bypassKey{}, reason)
}

func tokensFrom(ctx context.Context) []Token {
	tokens, _ := ctx.Value(tokensKey{}).([]Token)
	return tokens
}

func bypassReason(ctx context.Context) (string, bool) {
	reason, _ := ctx.Value(bypassKey{}).(string)
	return reason, reason != ""
}

// bypassesNothing reports whether the context's Bypass was given no reason.
func bypassesNothing(ctx context.Context) bool {
	reason, given := ctx.Value(bypassKey{}).(string)
	return given && reason == ""
}

// withoutReason is a refusal of a statement with a Bypass that was given no reason.
type withoutReason struct{ error }

func (e withoutReason) Error() string {
	return e.error.Error() + "; the context's Bypass has an empty reason, and bypasses nothing"
}

func (e withoutReason) Unwrap() error { return e.error }

// tokens returns those of the tokens that are for the table; none if it takes none, or if
// none is needed and there is none.
func (t *table) tokens(given []Token, needed bool) ([]Token, error) {
	if !t.rules.Fenced() {
		return nil, nil
	}
	var found []Token
	if t.rules.Key != "" {
		found = t.keyedTokens(given)
	} else {
		for i := range given {
			if t.takes(given[i].Name) {
				found = given[i : i+1]
			}
		}
	}
	for _, token := range found {
		if err := token.Validate(); err != nil {
			return nil, &tokenError{t.name, err}
		}
	}
	if len(found) == 0 && needed {
		return nil, &refusal{sentinel: ErrNoFence, table: t.name,
			reason: fmt.Sprintf("table %q: the context carries no token called %q; add one with WithFence, or have a "+
				"source give it (WithTokens)%s",
				t.name, t.tokenName("<"+t.rules.Key+">"), otherNames(t.resource, given))}
	}
	return found, nil
}

// otherNames says which tokens there are where that of a resource is missing: its name may be another one's by mistake.
func otherNames(resource string, given []Token) string {
	const most = 3
	var names []string
	for _, token := range given {
		if name, _, _ := strings.Cut(token.Name, "/"); name != resource && verify.IsNear(name, resource) {
			return fmt.Sprintf("; it carries %q: did you mean %q? Names are compared letter by letter", token.Name, resource+strings.TrimPrefix(token.Name, name))
		}
		names = append(names, strconv.Quote(token.Name))
	}
	switch {
	case len(names) == 0:
		return ""
	case len(names) > most:
		names = append(names[:most], "…")
	}
	return "; it carries " + strings.Join(names, ", ") + ": if that is the table's, as the key of its lease, " +
		"register the table with Resource of that name"
}
