package lease

import (
	"context"
	"database/sql"
	"fmt"
	"time"
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
func (m *Leases) Extend(ctx context.Context, lockID string, ttl time.Duration) (time.Time, error) {
	until, _, err := m.extend(ctx, lockID, ttl)
	return until, err
}

func (m *Leases) extend(ctx context.Context, lockID string, ttl time.Duration) (until time.Time, left time.Duration, err error) {
	if err := ValidateLockID(lockID); err != nil {
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
		return time.Time{}, 0, fmt.Errorf("lease: extend: %w", err)
	}
	if !held {
		return time.Time{}, 0, m.notHeld(ctx, lockID)
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
func (m *Leases) Release(ctx context.Context, lockID string) error {
	if err := ValidateLockID(lockID); err != nil {
		return err
	}
	var key string
	row := []any{&key}
	notify := m.listener.listener != nil
	if notify {
		row = append(row, new(any)) // pg_notify's value
	}
	scan := func(rows *sql.Rows) error { return rows.Scan(row...) }
	if err := m.query(ctx, scan, m.dialect.release(lockID, notify)); err != nil {
		return fmt.Errorf("lease: release: %w", err)
	}
	if key == "" {
		return m.notHeld(ctx, lockID)
	}
	m.queues.wake(key)
	return nil
}

// notHeld finds out for people why a lock id was refused.
func (m *Leases) notHeld(ctx context.Context, lockID string) error {
	e := &NotHeldError{LockID: lockID}
	// Without an answer the refusal stands all the same.
	_ = queryOnce(ctx, m.db, func(*sql.Rows) error { e.Expired = true; return nil }, m.dialect.ended(lockID))
	return e
}
