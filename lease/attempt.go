package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence/internal/cleanup"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/share"
)

const (
	// goesOn is how long the statement of an attempt may continue after its caller has gone, and shortly is this time
	// if the pool has no other connection. Giving up a statement gives up its connection, so goesOn is longer than a
	// busy server takes.
	goesOn  = 2 * time.Second
	shortly = 500 * time.Millisecond

	// mostGoOn is the maximum number of statements that continue without their callers.
	mostGoOn = 8

	// lateLimit is how long a statement without a response may still reach the server. Linux sends the rest of a closed
	// connection for about 100 s (tcp_orphan_retries).
	lateLimit = 2 * time.Minute
)

// takeAlone makes the attempt in a separate statement, and calls at.Leave after it, so that another can begin. When ctx
// ends, takeAlone returns at once, and a lease that the statement took is released in the background.
func (m *Leases) takeAlone(ctx context.Context, t *taking, at share.Place) error {
	sending, cancel := m.goOn(ctx)
	answered := make(chan taking, 1)
	go func() {
		defer cancel()
		a := *t
		a.err = m.takeOnce(sending, &a)
		at.Leave()
		answered <- a
	}()
	select {
	case *t = <-answered:
		if t.unknown {
			m.undo(t.r, true)
		}
		return t.err
	case <-ctx.Done():
		m.abandoned.add(t.r)
		go m.outlive(sending, answered, t.r)
		return ctx.Err()
	}
}

// abandoned holds the lock ids of attempts that are being undone, and of leases that are being released in the
// background. A caller with [Resume] must not get their leases.
type abandoned struct {
	mu    sync.Mutex
	until map[string]time.Time // by lock id
}

// add records an attempt that will be undone. It must be called before the caller can make another attempt.
func (a *abandoned) add(r *request) {
	if r.resumes { // only with Resume a caller gets a lease that another attempt has taken
		a.note(r.lockID, 2*goesOn+r.ttl) // until a lease that the attempt took has expired
	}
}

// note records a lock id for a time.
func (a *abandoned) note(lockID string, d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(a.until, func(_ string, until time.Time) bool { return now.After(until) })
	if a.until == nil {
		a.until = make(map[string]time.Time)
	}
	a.until[lockID] = now.Add(d)
}

func (a *abandoned) has(lockID string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Before(a.until[lockID])
}

// takeOnce sends the attempt's statement, and sends it again after a rollback or a broken connection.
func (m *Leases) takeOnce(ctx context.Context, t *taking) error {
	var o outcome
	again := t.unknown
	err := m.sendAgain(func(second bool) error {
		again = again || second
		return dberr.Resend(ctx, dberr.IsRolledBack, func() error {
			o = outcome{}
			return m.dialect.take(ctx, &m.database, t.r, &o)
		})
	})
	if err != nil {
		t.unknown = again || o.committing && mayHaveCommitted(err)
		return err
	}
	t.o, t.unknown = &o, false
	return nil
}

// outlive waits until the statement of an attempt without a caller has ended, and undoes the attempt.
func (m *Leases) outlive(sending context.Context, answered <-chan taking, r *request) {
	t := taking{unknown: true}
	select {
	case t = <-answered:
	case <-sending.Done():
		select {
		case t = <-answered:
		case <-time.After(goesOn): // lib/pq waits for the server even after the context has ended
		}
	}
	if t.unknown || t.o != nil && t.o.won != nil {
		m.undo(r, t.unknown)
	}
}

// goOn returns a context for statements of a caller with ctx. They wait for a connection only until ctx ends (see
// callerOf). A statement that was sent continues for a short time: a driver may answer a cancelled context before the
// database has read the statement, and close the connection.
func (m *Leases) goOn(ctx context.Context) (context.Context, context.CancelFunc) {
	sending, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), callerKey{}, ctx))
	stop := context.AfterFunc(ctx, func() {
		m.goingOn.Add(1)
		defer m.goingOn.Add(-1)
		limit := time.NewTimer(m.grace())
		defer limit.Stop()
		select {
		case <-limit.C:
			cancel()
		case <-sending.Done():
		}
	})
	return sending, func() {
		stop()
		cancel()
	}
}

// grace returns how long a statement may continue after its caller has gone; less if other calls wait for a connection.
func (m *Leases) grace() time.Duration {
	switch {
	case m.goingOn.Load() > mostGoOn:
		return 0
	case m.cleanup.IsBusy():
		return shortly
	}
	return goesOn
}

// undo releases in the background a lease that an attempt may have taken, and repeats this until the lease would have
// expired. late reports whether the statement got no response and may still reach the server.
func (m *Leases) undo(r *request, late bool) {
	m.abandoned.add(r)
	var first time.Time
	m.cleanup.Add(&cleanup.Task{
		For: r.ttl,
		Do: func(ctx context.Context, _ *sql.DB) (done bool, err error) {
			if _, err := m.exec(ctx, m.dialect.undo(r.key, r.lockID)); err != nil {
				return false, err
			}
			m.queues.wake(r.key)
			if first.IsZero() {
				first = time.Now()
			}
			return !late || time.Since(first) > lateLimit, nil
		},
		Dropped: func(err error) {
			if err != nil {
				m.log().Debug("lease: the outcome of an attempt is unknown, and it wasn't undone; a lease "+
					"that it took has ended with its ttl", "key", r.key, "ttl", r.ttl, "err", err)
			}
		},
	})
}

type callerKey struct{}

// callerOf returns the context of the caller of a statement that is sent under ctx.
func callerOf(ctx context.Context) context.Context {
	if caller, ok := ctx.Value(callerKey{}).(context.Context); ok {
		return caller
	}
	return ctx
}

// An unsentError is the error of a statement that got no connection, so that it wasn't sent.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

func wasSent(err error) bool {
	var unsent *unsentError
	return !errors.As(err, &unsent)
}

// A taking is one attempt at a lease.
type taking struct {
	r       *request
	o       *outcome // nil until the attempt has an outcome
	unknown bool     // a statement that was sent may have taken the lease, although err isn't nil
	err     error
}

func (m *Leases) settle(ctx context.Context, t *taking) error {
	if t.r.session.Valid { // a shared statement has no session
		return m.takeAlone(ctx, t, share.Place{})
	}
	shared := &taking{r: t.r}
	at, settled, err := m.takes.Share(ctx, t.r.key, shared)
	if err != nil { // the batch may still write to shared, and undoAbandoned undoes what it takes
		m.abandoned.add(t.r)
		return err
	}
	*t = *shared
	if settled {
		if t.unknown {
			m.undo(t.r, true)
		}
		return t.err
	}
	return m.takeAlone(ctx, t, at)
}

// takeAll sends one statement for several attempts. An attempt that the statement doesn't settle is made by takeAlone,
// which also finds a lease that the statement took before its connection broke.
func (m *Leases) takeAll(ctx context.Context, batch []*share.Member[*taking]) {
	var asked []*taking
	for _, b := range batch {
		asked = append(asked, b.Call)
	}
	sending, cancel := m.goOn(ctx)
	defer cancel()
	ok, committing, err := m.dialect.takeAll(sending, &m.database, asked)
	if err == nil && !ok {
		m.takes.Off()
	}
	for _, b := range batch {
		t := b.Call
		switch {
		case err == nil && t.o != nil && t.o.won == nil && t.r.notified > 0:
			t.o = nil // takeAlone must ask for a notification
		case err != nil:
			t.o = nil
			t.unknown = committing && mayHaveCommitted(err)
			if t.unknown && !errors.Is(err, driver.ErrBadConn) {
				t.err = err
			}
		}
		b.Settled = t.o != nil || t.err != nil
	}
}

// undoAbandoned releases the leases that a shared statement took for callers that had gone: in one statement, except
// for attempts with an unknown outcome.
func (m *Leases) undoAbandoned(gone []*share.Member[*taking]) {
	var won []*taking
	for _, b := range gone {
		switch t := b.Call; {
		case t.unknown:
			m.undo(t.r, true)
		case t.o != nil && t.o.won != nil:
			won = append(won, t)
		}
	}
	switch len(won) {
	case 0:
	case 1:
		m.undo(won[0].r, false)
	default:
		m.undoAll(won)
	}
}

// undoAll releases several leases in one statement. A lease that another transaction has locked is released separately.
func (m *Leases) undoAll(won []*taking) {
	var longest time.Duration
	for _, t := range won {
		m.abandoned.add(t.r)
		longest = max(longest, t.r.ttl)
	}
	m.cleanup.Add(&cleanup.Task{For: longest, Do: func(ctx context.Context, _ *sql.DB) (done bool, err error) {
		all := make([]*releasing, len(won))
		for i, t := range won {
			all[i] = &releasing{lockID: t.r.lockID, release: newLockID()}
		}
		if _, err := m.dialect.releaseAll(ctx, &m.database, all, m.listener.listener != nil); err != nil {
			return false, err
		}
		for i, r := range all {
			if r.key == "" {
				m.undo(won[i].r, false)
				continue
			}
			m.queues.wake(r.key)
		}
		return true, nil
	}})
}
