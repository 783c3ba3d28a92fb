package sqlfence

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence/internal/core"
)

// RetryOptions are the options of [Retry]. The zero value has the defaults. Negative values, and a MaxBackoff below
// Backoff are [ErrInvalid].
type RetryOptions struct {
	Tx *sql.TxOptions // of each transaction, as for [sql.DB.BeginTx]

	// Attempts is the highest number of runs. 0 means 10.
	Attempts int

	// Backoff is the longest pause before the second attempt, and doubles for each later attempt. A pause is random, at
	// least half of the longest. 0 means 10 ms, or MaxBackoff if that is shorter.
	Backoff time.Duration

	// MaxBackoff limits the doubling. 0 means 1 s, or Backoff if that is longer.
	MaxBackoff time.Duration
}

// Retry runs fn in a transaction and commits it, and begins again after a temporary error. So fn must read the data for
// its decisions in the transaction, must have no other effects, and must not commit or roll back. If fn returns an
// error or panics, Retry rolls the transaction back.
//
// Temporary errors are serialization failures, deadlocks and lock timeouts (docs/errors.md has the codes), and errors
// with a method Temporary that returns true, but never [ErrStale], [ErrNotIssued], [ErrGone], [ErrNoSerial],
// [ErrLocked], [ErrUnknownOutcome] or a context's error. A failed commit is repeated only after a serialization failure
// or a deadlock. A commit without a response is ErrUnknownOutcome.
//
// Retry returns nil after a commit, else the last error with the number of attempts, and with the [context.Cause] if
// the context ended during a pause. Retry is safe for concurrent use.
func Retry(ctx context.Context, db *sql.DB, opts RetryOptions, fn func(context.Context, *sql.Tx) error) error {
	if err := opts.complete(); err != nil {
		return err
	}
	retrying := core.Retrying{Attempts: opts.Attempts, Backoff: opts.Backoff, MaxBackoff: opts.MaxBackoff}
	begin := func() (core.Tx, func() error, error) {
		tx, err := db.BeginTx(ctx, opts.Tx)
		return tx, func() error { return fn(ctx, tx) }, err
	}
	return retrying.RunTx(ctx, begin, func(err error) bool {
		return !errors.Is(err, sql.ErrTxDone) && core.CommitUnanswered(db.Driver(), err)
	})
}

// complete checks the options and fills in the defaults.
func (o *RetryOptions) complete() error {
	if o.Attempts < 0 || o.Backoff < 0 || o.MaxBackoff < 0 {
		return fmt.Errorf("%w: Retry: Attempts, Backoff or MaxBackoff is negative", ErrInvalid)
	}
	o.Attempts = cmp.Or(o.Attempts, core.DefaultRetrying.Attempts)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, max(core.DefaultRetrying.MaxBackoff, o.Backoff))
	o.Backoff = cmp.Or(o.Backoff, min(core.DefaultRetrying.Backoff, o.MaxBackoff))
	if o.MaxBackoff < o.Backoff {
		return fmt.Errorf("%w: Retry: MaxBackoff %v is less than Backoff %v", ErrInvalid, o.MaxBackoff, o.Backoff)
	}
	return nil
}
