package sqlfence

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/sqlfence/sqlfence/internal/nfc"
)

// A TokenSource gives a write its tokens if the context carries none for a table that needs one. It
// is for programs that have no context where they write, above all for one that leads: package
// lease's Election.Tokens is a source.
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
type TokenSource func(ctx context.Context, names []string) ([]Token, error)

// WithTokens sets a source of tokens for writes with a context that carries none. Nil is refused,
// and so are two sources; to have several, write a source that asks them all.
//
// The source is asked once for each execution that needs a token which its context
// doesn't carry, nor its transaction's (see the package's documentation of transactions). A
// context that carries a token for one row of a table with a [Key] has tokens for that
// table. The source isn't asked for statements that touch no registered table, are refused anyway,
// or run under [Bypass], nor when a statement is prepared. A token from the source guards a
// write as one from the context does. Where the source has none, a write is [ErrNoFence],
// or passes unguarded on an [Optional] table, and where [UnfencedInserts] needs none; an error of
// the source refuses it there, too.
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
func WithTokens(source TokenSource) Option {
	return func(o *options) {
		switch {
		case source == nil:
			o.fail(errors.New("nil token source"))
		case o.source != nil:
			o.fail(errors.New("WithTokens twice; write one source that asks both"))
		}
		o.source = source
	}
}

// lacks returns the names of the tokens that the plan's tables need and that given has
// none for, and the first of these tables; nil if it has all.
func (e *execution) lacks(given []Token) (names []string, first *table) {
	for i := range e.plan.Tables {
		t := e.table(i)
		switch {
		case !t.lacks(given):
		case names == nil:
			names, first = t.asked, t
		case !slices.Contains(names, t.asked[0]):
			names = append(slices.Clip(names), t.asked[0])
		}
	}
	return names, first
}

// lacks reports whether the table needs a token, and none of these is for it.
func (t *table) lacks(given []Token) bool {
	return t.rules.Fenced() && !slices.ContainsFunc(given, func(token Token) bool { return t.takes(token.Name) })
}

// supply returns the tokens that the source gives for what the context's leave out.
func (e *execution) supply(ctx context.Context, given []Token) ([]Token, error) {
	names, t := e.lacks(given)
	if names == nil {
		return nil, nil
	}
	got, err := e.state.settings.source(ctx, names)
	if err != nil {
		return nil, &sourceError{t.name, err}
	}
	if i := slices.IndexFunc(got, func(token Token) bool { return !nfc.Is(token.Name) }); i >= 0 {
		got = slices.Clone(got)
		for i := range got {
			got[i].Name = nfc.String(got[i].Name)
		}
	}
	var seen map[string]bool
	if len(got) > 1 {
		seen = make(map[string]bool, len(got))
	}
	for _, token := range got {
		switch {
		case !e.wants(given, token.Name):
			return nil, t.misled("the token source gave a token called %.80q when asked for %q", token.Name, names)
		case seen[token.Name]:
			return nil, t.misled("the token source gave two tokens called %.80q", token.Name)
		case seen != nil:
			seen[token.Name] = true
		}
	}
	return got, nil
}

// wants reports whether a token of this name is for a table that none of given is for.
func (e *execution) wants(given []Token, name string) bool {
	for i := range e.plan.Tables {
		if t := e.table(i); t.lacks(given) && t.takes(name) {
			return true
		}
	}
	return false
}

// misled refuses what a source returned.
func (t *table) misled(format string, args ...any) error {
	return &refusal{sentinel: ErrNoFence, err: ErrInvalid, table: t.name, reason: fmt.Sprintf("table %q: ", t.name) + fmt.Sprintf(format, args...)}
}

// A sourceError is ErrNoFence with the error of a token source. On driver.ErrBadConn
// database/sql would throw the connection away and ask the source again; it isn't found.
type sourceError struct {
	table string
	err   error
}

func (e *sourceError) Error() string {
	return fmt.Sprintf("%v: table %q: the token source: %v", ErrNoFence, e.table, e.err)
}

func (e *sourceError) As(to any) bool { return errors.As(e.err, to) }

// Is stands for Unwrap, which would show database/sql all of the error.
func (e *sourceError) Is(target error) bool {
	switch target {
	case ErrNoFence:
		return true
	case driver.ErrBadConn:
		return false
	}
	return errors.Is(e.err, target)
}
