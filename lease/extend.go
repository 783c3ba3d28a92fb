package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Extend makes the live lease with this lock id end ttl (1 ms to 24 h) from now, and returns the new end by the
// server's clock. Holders of a [Lease] must use [Lease.Extend]. Errors: [*NotHeldError]; [ErrInvalid]. After other
// errors, the lease may have been extended.
func (m *Leases) Extend(ctx context.Context, lockID string, ttl time.Duration) (time.Time, error) {
	until, _, err := m.extend(ctx, lockID, ttl)
	return until, err
}

func (m *Leases) extend(
	ctx context.Context, lockID string, ttl time.Duration,
) (until time.Time, left time.Duration, err error) {
	if err := validateLockID(lockID); err != nil {
		return time.Time{}, 0, err
	}
	if err := checkTTL(ttl); err != nil {
		return time.Time{}, 0, err
	}
	held := false
	scan := func(rows *sql.Rows) error {
		held = true
		until, left, err = scanTimes(rows)
		return err
	}
	if err := m.query(ctx, scan, m.dialect.extend(lockID, ttl)); err != nil {
		return time.Time{}, 0, fmt.Errorf("lease: extend: %w", m.explain(ctx, err))
	}
	if !held {
		return time.Time{}, 0, m.notHeld(ctx, lockID)
	}
	return until, left, nil
}

// Release ends the live lease with this lock id, even before its [MinHold]. Holders of a [Lease] must use
// [Lease.Release]. Errors: [*NotHeldError]; [ErrInvalid]. After other errors, the lease may have been released.
func (m *Leases) Release(ctx context.Context, lockID string) error {
	return m.releaseAfter(ctx, lockID, 0)
}

// releaseAfter ends a lease once it has been held for a time.
func (m *Leases) releaseAfter(ctx context.Context, lockID string, hold time.Duration) error {
	if err := validateLockID(lockID); err != nil {
		return err
	}
	key, again, err := m.release(ctx, lockID, hold)
	switch {
	case err != nil:
		err = m.explain(ctx, err)
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			m.releaseLater(lockID, hold)
		}
		return fmt.Errorf("lease: release: %w", err)
	case key != "":
		m.queues.wake(key)
		return nil
	}
	e := m.notHeld(ctx, lockID)
	if again && !e.Expired {
		return errAnswerLost
	}
	return e
}

// errAnswerLost: a release was sent twice because the first answer was lost, and another holder has replaced the row.
var errAnswerLost = errors.New("lease: release: the answer was lost with the connection; the lease has ended by " +
	"this release or before it")

// notHeld returns the error for a lock id without a live lease. It queries whether the lease has expired.
func (m *Leases) notHeld(ctx context.Context, lockID string) *NotHeldError {
	e := &NotHeldError{LockID: lockID}
	// Without an answer the refusal stands all the same.
	_ = queryOnce(ctx, m.db, func(*sql.Rows) error { e.Expired = true; return nil }, m.dialect.ended(lockID))
	return e
}
