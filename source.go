package sqlfence

import (
	"context"
	"errors"

	"github.com/sqlfence/sqlfence/internal/core"
)

// WithTokenSource sets a source, which gives a write its tokens if the context carries none for a table that needs one.
// It is for programs that have no context where they write, above all for one that leads: package lease's
// Election.Tokens is a source. Nil is refused, and so are two sources; to have several, write a source that asks
// them all.
//
// names says what is missing: the table's [Resource], and for a table with a [Key] the
// resource and a slash, "books/", as the keys of the rows aren't known yet. What is wanted
// for that are tokens of rows, such as "books/42". The source returns the tokens that it
// has for these names; for a name it may have none, and several only for one that ends in
// a slash. Names may be in any of Unicode's normalization forms. An error refuses the
// write before anything is sent: the write is [ErrNoFence] and the source's error. So is a
// write for which the source returns a token of another name, or two of one name;
// that is [ErrInvalid], too, as is an invalid token.
//
// It is called on the goroutine of each such write, with the write's context, so it must be
// safe for concurrent use, quick, and must not use the connection or transaction that the
// write is sent on. Neither side may change the slices that the other has given; the
// source may return the same one each time.
//
// The source is asked once for each execution that needs a token which its context
// doesn't carry, nor its transaction's (see the package's documentation of transactions). A
// context that carries a token for one row of a table with a [Key] has tokens for that
// table. The source isn't asked for statements that touch no registered table, are refused anyway,
// or run under [Bypass], nor when a statement is prepared. A token from the source guards a
// write as one from the context does. Where the source has none, a write is [ErrNoFence],
// or passes unguarded on an [Optional] table, and where [UnfencedInserts] needs none; an error of
// the source refuses it there, too. Where rows with a [Claim] are taken over or added, it isn't
// asked.
// In [Observe] mode such a write is reported and passes.
//
// A source tells who may write now. A program that read under one token, lost its lease,
// and has been given another in the meantime would write with the new token what it had
// decided under the old one. A transaction is protected from that: what it has written
// under one token it can't go on with under another. If the source gives a newer one for
// the same name, the statement is a [StaleError]; roll the transaction back. Where reading
// and writing outside of a transaction belong together, put the token into the context
// before reading, by [WithFence], or end such work before the next token is taken, as
// package lease's Election does.
func WithTokenSource(source func(ctx context.Context, names []string) ([]Token, error)) Option {
	return func(o *core.Options) {
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
