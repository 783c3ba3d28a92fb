package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/dberr"
)

// RetryOptions are the options of [Retry]. The zero value means the defaults.
type RetryOptions struct {
	// Tx are the options of every transaction, as for [sql.DB.BeginTx]. Nil is
	// the database's default isolation level.
	Tx *sql.TxOptions

	// Attempts is how often the transaction is run at most, including the first
	// run. 0 means 10; 1 never repeats. Negative is [ErrInvalid].
	Attempts int

	// Backoff is the longest pause before the second attempt; each further one
	// doubles it. The pause is a random time between half of it and the whole,
	// so that transactions that collided don't collide again. 0 means 10 ms. Negative
	// is [ErrInvalid].
	Backoff time.Duration

	// MaxBackoff is where the doubling ends. 0 means 1 s, or Backoff if that is longer.
	// Less than Backoff, or negative, is [ErrInvalid].
	MaxBackoff time.Duration
}

// Retry runs fn in a transaction and commits it. After a temporary error it starts
// again with a new transaction. Temporary are
//
//   - an error with a Temporary method that returns true, such as a [ConflictError] of
//     [WithSerial];
//   - a serialization failure or a deadlock: SQLSTATE 40001 and 40P01, on MySQL and MariaDB
//     the errors 1213 and 1020, on TiDB also 9007, 8002, 8005, 8022 and 8028;
//   - SQLite's BUSY and LOCKED;
//   - on MySQL and MariaDB a wait for a lock that took too long (1205), and a node that isn't
//     ready (1047).
//
// So fn must read, each time and in its own transaction, the data that it decides on, and
// must have no effects outside of the transaction.
//
// It never repeats after [ErrStale], [ErrNotIssued], [ErrGone], [ErrNoSerial], [ErrLocked],
// [ErrUnknownOutcome] or a context's error, nor once ctx has ended. A failed commit is
// repeated only after a serialization failure or a deadlock, which mean that nothing was
// committed. If the answer to a commit is lost, the error is ErrUnknownOutcome; in a fenced database only if the
// transaction had guarded statements or has called [github.com/sqlfence/sqlfence/tokens.Store.Hold].
//
// The transaction is rolled back if fn returns an error or panics. fn must not commit
// or roll back itself. Retry returns nil once a commit has succeeded, else the last
// error. That error also says the number of attempts if there were several, and wraps
// the context's error if the context ended during a pause, and the context's cause where that is
// [ErrStale]. Invalid options are
// [ErrInvalid]. Retry is safe for use by several goroutines at once.
func Retry(ctx context.Context, db *sql.DB, opts RetryOptions, fn func(context.Context, *sql.Tx) error) error {
	if err := opts.complete(); err != nil {
		return err
	}
	retrying := core.Retrying{Attempts: opts.Attempts, Backoff: opts.Backoff, MaxBackoff: opts.MaxBackoff}
	return retrying.Run(ctx, func() (again bool, err error) { return attemptTx(ctx, db, opts.Tx, fn) })
}

// complete checks the options and fills in the defaults.
func (o *RetryOptions) complete() error {
	if o.Attempts < 0 || o.Backoff < 0 || o.MaxBackoff < 0 {
		return fmt.Errorf("%w: Retry: Attempts, Backoff or MaxBackoff is negative", ErrInvalid)
	}
	if o.Attempts == 0 {
		o.Attempts = core.DefaultRetrying.Attempts
	}
	if o.MaxBackoff == 0 {
		o.MaxBackoff = max(core.DefaultRetrying.MaxBackoff, o.Backoff)
	}
	if o.Backoff == 0 {
		o.Backoff = min(core.DefaultRetrying.Backoff, o.MaxBackoff)
	}
	if o.MaxBackoff < o.Backoff {
		return fmt.Errorf("%w: Retry: MaxBackoff %v is less than Backoff %v", ErrInvalid, o.MaxBackoff, o.Backoff)
	}
	return nil
}

// attemptTx runs fn in one transaction, and reports whether to do it again.
func attemptTx(
	ctx context.Context, db *sql.DB, opts *sql.TxOptions, fn func(context.Context, *sql.Tx) error,
) (again bool, err error) {
	tx, err := db.BeginTx(ctx, opts)
	if err != nil {
		return core.Retryable(err, notRetried), err
	}
	// After a commit it does nothing. It runs also when fn panics.
	defer tx.Rollback()
	if err := fn(ctx, tx); err != nil {
		return core.Retryable(err, notRetried), err
	}
	if err := ctx.Err(); err != nil {
		return false, err // nothing was committed
	}
	err = tx.Commit()
	if !errors.Is(err, sql.ErrTxDone) && core.CommitUnanswered(db.Driver(), err) {
		return false, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return dberr.IsRolledBack(err), err
}

// notRetried are the errors that running a transaction again can't change.
var notRetried = []error{ErrStale, ErrNotIssued, ErrGone, ErrNoSerial, ErrLocked, ErrUnknownOutcome}
