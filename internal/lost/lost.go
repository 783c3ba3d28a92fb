// Package lost gives an error its reason where a context has ended because a holder has lost
// what its token stands for.
package lost

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrStale is sqlfence.ErrStale.
var ErrStale = errors.New("sqlfence: stale fencing token")

// Explain returns the error of a call with ctx. If the [Cause] of ctx's end is a loss, that is
// the reason, as [Because] returns it.
func Explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cause := Cause(ctx); cause != nil {
		return Because(cause, err)
	}
	return err
}

// Cause returns the cause of ctx's end if that is [ErrStale], else nil.
func Cause(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrStale) {
		return cause
	}
	return nil
}

// Because returns the error of work that failed with err, or not at all, and has lost what it
// held by cause. It is both, but it is not the end of a context: a program that ignores that, as
// it stops its work itself in this way, must not ignore a loss.
func Because(cause, err error) error {
	switch {
	case err == nil, err == context.Canceled, err == context.DeadlineExceeded:
		return cause
	case errors.Is(err, cause) && !isContextEnd(err):
		return err
	}
	return &explained{cause, WithoutContext(err)}
}

// explained is an error with its cause.
type explained struct{ cause, err error }

func (e *explained) Error() string {
	cause, err := e.cause.Error(), e.err.Error()
	if strings.Contains(err, cause) {
		return err
	}
	return fmt.Sprintf("%s: %s", cause, err)
}

func (e *explained) Unwrap() []error { return []error{e.cause, e.err} }

// WithoutContext returns err so that it isn't found to be the end of a context. It is still
// all else that it was.
func WithoutContext(err error) error {
	if !isContextEnd(err) {
		return err
	}
	return withoutContext{err}
}

func isContextEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// withoutContext has Is and As in place of Unwrap, which would show all of the error.
type withoutContext struct{ err error }

func (e withoutContext) Error() string  { return e.err.Error() }
func (e withoutContext) As(to any) bool { return errors.As(e.err, to) }

func (e withoutContext) Is(target error) bool {
	return target != context.Canceled && target != context.DeadlineExceeded && errors.Is(e.err, target)
}
