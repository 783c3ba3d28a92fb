// Package trusted marks the statements that sqlfence's packages send on sqlfence's tables. A fenced database sends
// marked statements unguarded.
package trusted

import (
	"context"
	"strings"
	"sync/atomic"
)

type key struct{}

// Context returns the context to send query with. It marks only this query as sqlfence's own, because drivers pass the
// context to hooks of the application, and a hook's own statements must be guarded.
func Context(ctx context.Context, query string) context.Context {
	return context.WithValue(ctx, key{}, query)
}

// Is reports whether ctx comes from [Context] for query. A wrapper around the fenced driver may have appended a comment
// to query, as for tracing.
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

// A Hold is a call of tokens.Store.Hold, which the transaction's connection remembers. The call itself must not change
// the connection's state: when the call succeeds, the transaction may have ended with its context, and another caller
// may use the connection.
type Hold struct{ Succeeded atomic.Bool }

type holdKey struct{}

// Context is the function Context for a statement of the Hold.
func (h *Hold) Context(ctx context.Context, query string) context.Context {
	return context.WithValue(Context(ctx, query), holdKey{}, h)
}

// HoldOf returns the Hold of the statement query, or nil.
func HoldOf(ctx context.Context, query string) *Hold {
	if h, ok := ctx.Value(holdKey{}).(*Hold); ok && Is(ctx, query) {
		return h
	}
	return nil
}
