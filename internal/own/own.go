// Package own marks the statements that sqlfence's packages send on its own tables.
package own

import "context"

type key struct{}

// Context returns a context whose statements a fenced database sends as they are.
// It is for one statement, never for what an application does.
func Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, true)
}

// Is reports whether ctx comes from [Context].
func Is(ctx context.Context) bool {
	return ctx.Value(key{}) != nil
}
