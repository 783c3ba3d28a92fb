package lease

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
)

// Extend lets the live lease with a lock id end ttl from now, by the server's
// clock, whether that is later or earlier than before, and returns that time.
// Its token stays the same. It is a plain update of the lease's own row, and so
// never waits for a fenced write. A lease that has ended stays so.
//
// Whoever has a [Lease] extends it by [Lease.Extend], which keeps its Context.
//
// Errors: [*NotHeldError] (which is [ErrNotHeld]), [ErrInvalid] for the lock id
// or the ttl, or the database's own; the lease may have been extended then.
func (l *Leases) Extend(ctx context.Context, lockID string, ttl time.Duration) (time.Time, error) {
	until, _, err := l.extend(ctx, lockID, ttl)
	return until, err
}

func (l *Leases) extend(ctx context.Context, lockID string, ttl time.Duration) (until time.Time, left time.Duration, err error) {
	if err := ValidateLockID(lockID); err != nil {
		return time.Time{}, 0, err
	}
	if err := checkTTL(ttl); err != nil {
		return time.Time{}, 0, err
	}
	args := []any{lockID, ttl.Microseconds()}
	if l.dialect == sqlfence.SQLite {
		args[0], args[1] = args[1], args[0]
	}
	held := false
	scan := func(rows *sql.Rows) error {
		held = true
		until, left, err = scanTimes(rows)
		return err
	}
	if err := l.query(ctx, scan, l.sql.extend, args...); err != nil {
		return time.Time{}, 0, fmt.Errorf("lease: extend: %w", err)
	}
	if !held {
		return time.Time{}, 0, l.notHeld(ctx, lockID)
	}
	return until, left, nil
}

// Release ends the live lease with a lock id. Of several calls at most one
// succeeds. Tokens are not touched: the next lease of the key gets the next one.
//
// Whoever has a [Lease] releases it by [Lease.Release], which ends its Context.
//
// Errors: [*NotHeldError] (which is [ErrNotHeld]), with nothing changed,
// [ErrInvalid] for the lock id, or the database's own; the lease may have been
// released then.
func (l *Leases) Release(ctx context.Context, lockID string) error {
	if err := ValidateLockID(lockID); err != nil {
		return err
	}
	var key string
	scan := func(rows *sql.Rows) error { return rows.Scan(&key) }
	if l.hearing.listener != nil {
		var notified any
		scan = func(rows *sql.Rows) error { return rows.Scan(&key, &notified) }
	}
	if err := l.query(ctx, scan, l.sql.release, lockID); err != nil {
		return fmt.Errorf("lease: release: %w", err)
	}
	if key == "" {
		return l.notHeld(ctx, lockID)
	}
	l.lines.wake(key)
	return nil
}

// notHeld finds out for people why a lock id was refused.
func (l *Leases) notHeld(ctx context.Context, lockID string) error {
	e := &NotHeldError{LockID: lockID}
	// Without an answer the refusal stands all the same.
	_ = queryOnce(ctx, l.db, func(*sql.Rows) error { e.Expired = true; return nil }, l.sql.ended, lockID)
	return e
}
