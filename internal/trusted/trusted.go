// Package trusted marks the statements that sqlfence's packages send on its own tables, which a
// fenced database sends as they are.
package trusted

import (
	"context"
	"strings"
)

type key struct{}

// Context returns the context to send one statement with. Drivers, and what is put around them,
// show the context to hooks of the application: in their hands it is worth nothing for another
// text.
func Context(ctx context.Context, query string) context.Context {
	return context.WithValue(ctx, key{}, query)
}

// Is reports whether ctx comes from [Context] for query. A wrapper between the package and the
// fence may have put a comment behind it, as for tracing.
func Is(ctx context.Context, query string) bool {
	text, ok := ctx.Value(key{}).(string)
	if !ok {
		return false
	}
	rest, same := strings.CutPrefix(query, text)
	return same && (rest == "" || isComment(strings.TrimSpace(rest)))
}

func isComment(s string) bool {
	inner, opened := strings.CutPrefix(s, "/*")
	inner, closed := strings.CutSuffix(inner, "*/")
	return opened && closed && !strings.Contains(inner, "*/")
}

// A Hold is a call of tokens' Hold, on its way to the connection that its transaction uses.
type Hold struct{ noted func() }

type holdKey struct{}

// Context is the package's Context for a statement of the Hold.
func (h *Hold) Context(ctx context.Context, query string) context.Context {
	return context.WithValue(Context(ctx, query), holdKey{}, h)
}

// HoldOf returns the Hold that query is a statement of, or nil.
func HoldOf(ctx context.Context, query string) *Hold {
	if h, ok := ctx.Value(holdKey{}).(*Hold); ok && Is(ctx, query) {
		return h
	}
	return nil
}

// Note has a fenced connection call f if the Hold succeeds.
func (h *Hold) Note(f func()) { h.noted = f }

// Succeeded tells the connection that the transaction holds the tokens. One that isn't fenced is told nothing.
func (h *Hold) Succeeded() {
	if h.noted != nil {
		h.noted()
	}
}
