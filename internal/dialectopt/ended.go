package dialectopt

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/sqlfence/sqlfence/internal/lost"
)

// Ended adds the error of ctx to the error of a call with ctx, if ctx has ended. At the end of ctx drivers and
// database/sql may return driver.ErrBadConn, sql.ErrTxDone or sql.ErrConnDone. The result doesn't match these three
// errors, because a caller would retry, or believe that its transaction is over.
func Ended(ctx context.Context, err error) error {
	end := ctx.Err()
	if deadline, ok := ctx.Deadline(); ok && end == nil && !time.Now().Before(deadline) {
		end = context.DeadlineExceeded // a driver's timer may be ahead of the context's
	}
	if err == nil || end == nil || errors.Is(err, end) || errors.Is(err, lost.ErrStale) {
		return err
	}
	return &endedError{end, err}
}

type endedError struct{ end, err error }

func (e *endedError) Error() string { return e.err.Error() + ": " + e.end.Error() }

func (e *endedError) Unwrap() []error {
	for _, of := range []error{driver.ErrBadConn, sql.ErrTxDone, sql.ErrConnDone} {
		if errors.Is(e.err, of) {
			return []error{e.end}
		}
	}
	return []error{e.end, e.err}
}
