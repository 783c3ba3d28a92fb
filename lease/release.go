package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence/internal/cleanup"
	"github.com/sqlfence/sqlfence/internal/share"
)

// Extend makes the live lease with this [Lease.LockID] end ttl (1 ms to 24 h) from now, and returns the new end by the
// server's clock. Holders of a [Lease] must use [Lease.Extend]. Errors: [*NotHeldError]; [ErrInvalid]. After other
// errors, it may have been extended.
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
	s := m.dialect.extend(lockID, ttl)
	s.reset = func() { held = false }
	if err := m.query(ctx, scan, s); err != nil {
		return time.Time{}, 0, fmt.Errorf("lease: extend: %w", m.explain(ctx, err))
	}
	if !held {
		return time.Time{}, 0, m.notHeld(ctx, lockID)
	}
	return until, left, nil
}

// Release ends the live lease with this [Lease.LockID], despite its [MinHold]. Holders of a [Lease] must use
// [Lease.Release]. Errors: [*NotHeldError]; [ErrInvalid]. After other errors, it may have been released.
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
		return errResponseLost
	}
	return e
}

// errResponseLost is the error of a release that was sent twice because the first response was lost, if another holder
// has replaced the row since.
var errResponseLost = errors.New("lease: release: the answer was lost with the connection; the lease has ended by " +
	"this release or before it")

// notHeld returns the error for a lock id without a live lease. It queries whether the lease has expired.
func (m *Leases) notHeld(ctx context.Context, lockID string) *NotHeldError {
	e := &NotHeldError{LockID: lockID}
	// Without an answer the refusal stands all the same.
	_ = queryOnce(ctx, m.db, func(*sql.Rows) error { e.Expired = true; return nil }, m.dialect.ended(lockID))
	return e
}

// A releasing is one release of a lease.
type releasing struct {
	lockID, release string // in the row it is known by release
	hold            time.Duration
	key             string // empty until it is settled
	again           bool   // sent before, without an answer
	err             error
}

// release ends the live lease with this lock id, not before it was held for a time, and returns its key; empty if there
// is none. again is true if it was sent twice.
func (m *Leases) release(ctx context.Context, lockID string, hold time.Duration) (key string, again bool, err error) {
	shared := &releasing{lockID: lockID, release: newLockID(), hold: hold}
	if hold > 0 { // a shared statement releases at once
		err := m.releaseAlone(ctx, shared)
		return shared.key, shared.again, err
	}
	at, settled, err := m.releases.Share(ctx, lockID, shared)
	if err != nil { // the batch may still write to shared
		return "", false, err
	}
	r := *shared
	if settled {
		return r.key, r.again, r.err
	}
	defer at.Leave()
	err = m.releaseAlone(ctx, &r)
	return r.key, r.again, err
}

// releaseLater releases a lease in the background.
func (m *Leases) releaseLater(lockID string, hold time.Duration) {
	m.abandoned.note(lockID, 2*releaseLimit)
	m.cleanup.Add(&cleanup.Task{For: releaseLimit, Do: func(ctx context.Context, _ *sql.DB) (done bool, err error) {
		r := &releasing{lockID: lockID, release: newLockID(), hold: hold}
		err = m.releaseAlone(ctx, r)
		if r.key != "" {
			m.queues.wake(r.key)
		}
		return err == nil, err
	}})
}

func (m *Leases) releaseAlone(ctx context.Context, r *releasing) error {
	notify := m.listener.listener != nil
	s := m.dialect.release(r.lockID, r.release, r.hold, notify)
	scan := func(rows *sql.Rows) error { return rows.Scan(releaseRow(notify, &r.key)...) }
	s.reset = func() { r.key = "" }
	var err error
	if r.again {
		err = m.query(ctx, scan, s)
	} else {
		r.again, err = m.queryAgain(ctx, scan, s)
	}
	if err == nil && r.key == "" && r.again {
		err = m.query(ctx, func(rows *sql.Rows) error { return rows.Scan(&r.key) }, m.dialect.released(r.release))
	}
	return err
}

// releaseRow are the columns of a release, and the value of pg_notify.
func releaseRow(notify bool, columns ...any) []any {
	if notify {
		columns = append(columns, new(any))
	}
	return columns
}

// releaseAll sends one statement for several releases. It leaves to releaseAlone a locked row and a lease that has
// ended.
func (m *Leases) releaseAll(ctx context.Context, batch []*share.Member[*releasing]) {
	var all []*releasing
	for _, b := range batch {
		all = append(all, b.Call)
	}
	sending, cancel := m.goOn(ctx)
	defer cancel()
	committing, err := m.dialect.releaseAll(sending, &m.database, all, m.listener.listener != nil)
	for _, b := range batch {
		r := b.Call
		if err != nil {
			r.key, r.again = "", errors.Is(err, driver.ErrBadConn)
			if committing && mayHaveCommitted(err) && !r.again {
				r.err = err
			}
		}
		b.Settled = r.key != "" || r.err != nil
	}
}
