package core

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/similar"
)

type (
	tokensKey struct{}
	bypassKey struct{}
	serialKey struct{}
	editorKey struct{}
	overKey   struct{}
)

// WithTokens returns a context with exactly these tokens.
func WithTokens(ctx context.Context, tokens []Token) context.Context {
	return context.WithValue(ctx, tokensKey{}, tokens)
}

// TokensFrom returns the context's tokens. The caller must not modify them.
func TokensFrom(ctx context.Context) []Token {
	tokens, _ := ctx.Value(tokensKey{}).([]Token)
	return tokens
}

// WithBypass returns a context under which statements aren't guarded, for a reason.
func WithBypass(ctx context.Context, reason string) context.Context {
	return context.WithValue(ctx, bypassKey{}, reason)
}

// WithSerial returns a context with the version that the caller has read.
func WithSerial(ctx context.Context, serial int64) context.Context {
	return context.WithValue(ctx, serialKey{}, serial)
}

func serialFrom(ctx context.Context) (int64, bool) {
	serial, ok := ctx.Value(serialKey{}).(int64)
	return serial, ok
}

// WithEditor returns a context with the user who writes.
func WithEditor(ctx context.Context, user any) context.Context {
	return context.WithValue(ctx, editorKey{}, user)
}

// WithTakeover returns a context under which statements claim rows.
func WithTakeover(ctx context.Context) context.Context {
	return context.WithValue(ctx, overKey{}, true)
}

func takesOver(ctx context.Context) bool { return ctx.Value(overKey{}) != nil }

func bypassReason(ctx context.Context) (string, bool) {
	reason, _ := ctx.Value(bypassKey{}).(string)
	return reason, reason != ""
}

// bypassesNothing reports whether the context has a Bypass with an empty reason.
func bypassesNothing(ctx context.Context) bool {
	reason, given := ctx.Value(bypassKey{}).(string)
	return given && reason == ""
}

// withoutReason is the refusal of a statement under a Bypass with an empty reason.
type withoutReason struct{ error }

func (e withoutReason) Error() string {
	return e.error.Error() + "; the context's Bypass has an empty reason, and bypasses nothing"
}

func (e withoutReason) Unwrap() error { return e.error }

// tokens returns those of the given tokens that are for the table; none if the table takes no tokens. If needed is set,
// a missing token is an error.
func (t *Table) tokens(given []Token, needed bool) ([]Token, error) {
	if !t.Rules.Fenced() {
		return nil, nil
	}
	var found []Token
	if t.byRow() {
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
			return nil, &tokenError{t.Name, err}
		}
	}
	if len(found) == 0 && needed {
		if of := t.Rules.ClaimOf; of.Name != "" {
			return nil, &Refusal{Sentinel: ErrNoFence, Table: t.Name,
				Reason: fmt.Sprintf("table %q: the context carries no claim, a token called %q; take a row of "+
					"table %q over, and add its ClaimToken with WithFence%s", t.Name, t.tokenName("<"+of.Key+">"),
					t.ClaimOf, suppliedNames(t.Resource, given))}
		}
		if t.Rules.Claim != "" {
			return nil, &Refusal{Sentinel: ErrNoFence, Table: t.Name,
				Reason: fmt.Sprintf("table %q: the context carries no claim, a token called %q; the holder of a row "+
					"adds its ClaimToken with WithFence; to take rows over, raise the column %q, or use "+
					"WithTakeover%s", t.Name, t.tokenName("<"+t.Rules.Key+">"), t.Rules.Claim,
					suppliedNames(t.Resource, given))}
		}
		return nil, &Refusal{Sentinel: ErrNoFence, Table: t.Name,
			Reason: fmt.Sprintf("table %q: the context carries no token called %q; add one with WithFence, or have a "+
				"source give it (WithTokenSource)%s",
				t.Name, t.tokenName("<"+t.Rules.Key+">"), suppliedNames(t.Resource, given))}
	}
	return found, nil
}

// suppliedNames describes the given tokens for an error about a missing token of resource: a given token may have a
// wrong name by mistake.
func suppliedNames(resource string, given []Token) string {
	const most = 3
	var names []string
	for _, token := range given {
		if name, _, _ := strings.Cut(token.Name, "/"); name != resource && similar.IsNear(name, resource) {
			return fmt.Sprintf("; it carries %q: did you mean %q? Names are compared letter by letter", token.Name,
				resource+strings.TrimPrefix(token.Name, name))
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
