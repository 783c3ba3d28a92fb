package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/lost"
)

// Retrying holds the number of attempts at a transaction, and the pauses between them.
type Retrying struct {
	Attempts            int
	Backoff, MaxBackoff time.Duration
}

// DefaultRetrying is the default that the public packages document.
var DefaultRetrying = Retrying{Attempts: 10, Backoff: 10 * time.Millisecond, MaxBackoff: time.Second}

// Run calls once, which runs a transaction, until it succeeds or reports that a retry is useless, until the attempts
// are used up, or until ctx has ended.
func (r Retrying) Run(ctx context.Context, once func() (again bool, err error)) error {
	backoff := dberr.Backoff{Next: r.Backoff, Max: r.MaxBackoff}
	for n := 1; ; n++ {
		again, err := once()
		if err == nil {
			return nil
		}
		if !again || n >= r.Attempts || ctx.Err() != nil {
			return lost.Explain(ctx, attempted(err, n))
		}
		if cause := backoff.Wait(ctx); cause != nil {
			return lost.Explain(ctx, fmt.Errorf("%w (after %d attempts, then %w)", err, n, cause))
		}
	}
}

func attempted(err error, n int) error {
	if n == 1 {
		return err
	}
	return fmt.Errorf("%w (after %d attempts)", err, n)
}

// RunTx runs transactions as Run does. begin begins a transaction, and returns the work to do in it. unanswered reports
// whether err, of a commit, isn't the server's response.
func (r Retrying) RunTx(
	ctx context.Context, begin func() (tx Tx, work func() error, err error), unanswered func(err error) bool,
) error {
	return r.Run(ctx, func() (again bool, err error) {
		tx, work, err := begin()
		if err != nil {
			return retryable(err), err
		}
		// Rollback does nothing after a commit, and also runs if work panics.
		defer tx.Rollback()
		if err := work(); err != nil {
			return retryable(err), err
		}
		if err := ctx.Err(); err != nil {
			return false, err // nothing was committed
		}
		err = tx.Commit()
		if unanswered(err) {
			return false, &unknownOutcome{err: err, resent: true}
		}
		return dberr.IsRolledBack(err), err
	})
}

// final are the errors that a new transaction can't change.
var final = []error{ErrStale, ErrNotIssued, ErrGone, ErrNoSerial, ErrLocked, ErrUnknownOutcome, context.Canceled,
	context.DeadlineExceeded}

// retryable reports whether a transaction that failed with err before its commit may succeed when it is run again.
func retryable(err error) bool {
	if slices.ContainsFunc(final, func(f error) bool { return errors.Is(err, f) }) {
		return false
	}
	var temporary interface{ Temporary() bool }
	if errors.As(err, &temporary) && temporary.Temporary() {
		return true
	}
	return dberr.IsRolledBack(err) || dberr.IsBusy(err) || dberr.IsMySQLBusy(err)
}
