package core

import (
	"context"
	"errors"
	"fmt"
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
	backoff := dberr.Backoff{Pause: r.Backoff, Max: r.MaxBackoff}
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

// Retryable reports whether a transaction that failed with err before its commit may succeed when it is run again. An
// error of final is not retryable.
func Retryable(err error, final []error) bool {
	for _, f := range append(final[:len(final):len(final)], context.Canceled, context.DeadlineExceeded) {
		if errors.Is(err, f) {
			return false
		}
	}
	var temporary interface{ Temporary() bool }
	if errors.As(err, &temporary) && temporary.Temporary() {
		return true
	}
	return dberr.IsRolledBack(err) || dberr.IsBusy(err) || dberr.IsMySQLBusy(err)
}
