package sqlfence

import (
	"context"
	"errors"

	"github.com/sqlfence/sqlfence/internal/core"
)

// WithTokenSource sets a source, a function that returns tokens for writes without a token, such as Election.Tokens of
// package lease. The driver calls the source before a write, usually once for each execution, if neither the context
// nor the transaction carries a token of the table; but not before INSERTs and takeovers under [Claim].
//
// names has the [Resource] of each such table, or with [Key] the resource and a slash, such as "books/". The source
// returns at most one token for a plain name, and any number of row tokens, such as "books/42", for a name with a
// slash. Unrequested names, two tokens of one name, and invalid tokens are [ErrNoFence] and [ErrInvalid].
//
// Without a token the write fails with ErrNoFence, unless [Optional] or [UnfencedInserts] allows it. ErrNoFence wraps
// the source's error. A transaction fails with a [StaleError] if the source returns a newer token than before. Outside
// of a transaction sqlfence can't notice this: the program must end its work under the old token (docs/adopting.md).
//
// The source runs on the write's goroutine with its context. It must be fast and safe for concurrent use, and must not
// use the write's connection or transaction. The source must not change names.
func WithTokenSource(source func(ctx context.Context, names []string) ([]Token, error)) Option {
	return func(o *options) {
		switch {
		case source == nil:
			o.Fail(errors.New("WithTokenSource: the function is nil"))
		case o.Source != nil:
			o.Fail(errors.New("WithTokenSource twice; write one source that asks both"))
		}
		o.Source = fromSource(source)
	}
}

// fromSource adapts a source for the core.
func fromSource(source func(context.Context, []string) ([]Token, error)) core.Source {
	return func(ctx context.Context, given []core.Token, names []string) ([]core.Token, error) {
		tokens, err := source(ctx, names)
		for _, t := range tokens {
			given = append(given, core.Token(t))
		}
		return given, err
	}
}
