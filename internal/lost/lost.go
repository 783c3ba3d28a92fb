// Package lost adds the reason to an error if a context has ended because a holder lost its lease or lock.
package lost

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrStale is sqlfence.ErrStale.
var ErrStale = errors.New("sqlfence: stale fencing token")

// Explain returns the error of a call with ctx. If ctx has ended by a loss, with a [Cause], Explain returns [Because]
// of the cause.
func Explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cause := Cause(ctx); cause != nil {
		return Because(cause, err)
	}
	return err
}

// Cause returns the cause of ctx's end if the cause is [ErrStale], else nil.
func Cause(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrStale) {
		return cause
	}
	return nil
}

// Because returns the error of work that lost its lease or lock by cause, and failed with err, or didn't fail. The
// result matches cause and err, but neither context.Canceled nor DeadlineExceeded: a program that ends its own work by
// a context ignores these errors, and must not ignore a loss.
func Because(cause, err error) error {
	switch {
	case err == nil, err == context.Canceled, err == context.DeadlineExceeded:
		return cause
	case errors.Is(err, cause) && !isContextEnd(err):
		return err
	}
	return &explained{cause, WithoutContext(err)}
}

// explained is an error together with its cause.
type explained struct{ cause, err error }

func (e *explained) Error() string {
	cause, err := e.cause.Error(), e.err.Error()
	if strings.Contains(err, cause) {
		return err
	}
	return fmt.Sprintf("%s: %s", cause, err)
}

func (e *explained) Unwrap() []error { return []error{e.cause, e.err} }

// WithoutContext returns an error that matches all targets of err except for a context's end.
func WithoutContext(err error) error {
	if !isContextEnd(err) {
		return err
	}
	return withoutContext{err}
}

func isContextEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// withoutContext has Is and As instead of Unwrap, which would also show the context's end.
type withoutContext struct{ err error }

func (e withoutContext) Error() string  { return e.err.Error() }
func (e withoutContext) As(to any) bool { return errors.As(e.err, to) }

func (e withoutContext) Is(target error) bool {
	return target != context.Canceled && target != context.DeadlineExceeded && errors.Is(e.err, target)
}
