package sqlfence

import (
	"context"
	"errors"

	"github.com/sqlfence/sqlfence/internal/core"
)

// WithTokenSource sets a function that supplies a write's tokens if neither its context nor its transaction
// carries one for the table. It is for programs that write without a context; Election.Tokens of package lease
// is a source. A nil source and a second source are [ErrInvalid].
//
// names lists the missing names: the table's [Resource], or for a table with [Key] the resource and a slash,
// such as "books/". The source returns its tokens for these names: at most one for a plain name, and any number
// of row tokens, such as "books/42", for a name that ends in a slash. Names may be in any Unicode normalization
// form.
//
// If the source returns an error, the write is refused with [ErrNoFence], which wraps that error, even on an
// [Optional] table. A token of another name, two tokens of one name, or an invalid token refuse the write with
// ErrNoFence and [ErrInvalid]. If the source returns no token, the write fails with ErrNoFence, unless Optional
// or [UnfencedInserts] allows the write. In [Observe] mode these writes are reported and sent.
//
// The driver calls the source at most once for each execution, on the goroutine and with the context of the
// write. The source must be fast and safe for concurrent use, and must not use the connection or transaction of
// the write. The driver and the source must not change each other's slices; the source may return the same
// slice each time. The driver doesn't call the source when a statement is prepared, for statements that touch no
// registered table, are refused anyway or run under [Bypass], nor for writes that claim or add rows of a table
// with [Claim].
//
// A source returns the current token. A program that reads under one token, loses its lease and gets a new
// token would write the old decision with the new token. Inside a transaction this fails with a [StaleError];
// roll the transaction back. Outside of a transaction, put the token into the context with [WithFence] before
// reading, or end the work before the next token is issued, as Election does.
func WithTokenSource(source func(ctx context.Context, names []string) ([]Token, error)) Option {
	return func(o *options) {
		switch {
		case source == nil:
			o.Fail(errors.New("nil token source"))
		case o.Source != nil:
			o.Fail(errors.New("WithTokenSource twice; write one source that asks both"))
		}
		o.Source = fromSource(source)
	}
}

// fromSource returns the source as the core asks it.
func fromSource(source func(context.Context, []string) ([]Token, error)) core.Source {
	return func(ctx context.Context, given []core.Token, names []string) ([]core.Token, error) {
		tokens, err := source(ctx, names)
		for _, t := range tokens {
			given = append(given, core.Token(t))
		}
		return given, err
	}
}
