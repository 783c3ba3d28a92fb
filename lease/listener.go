package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// channel receives the key of each released lease.
const channel = "sqlfence_leases"

// A Listener receives PostgreSQL notifications: see [PoolListener] and docs/leases.md.
type Listener interface {
	// Listen executes LISTEN for the channel, then calls notify with an empty payload, because notifications may have
	// been missed, and then with each notification's payload, until ctx ends or the connection is lost. After it has
	// returned, it is called again a second later. It must not call notify concurrently.
	Listen(ctx context.Context, channel string, notify func(payload string)) error
}

// listenerState runs a listener while there are waiters, and a little longer.
type listenerState struct {
	listener Listener
	notify   func(payload string)
	on       atomic.Int32 // over 0: a notification would arrive

	mu    sync.Mutex
	users int
	stop  context.CancelFunc // nil while it doesn't run
}

const (
	listenerLinger   = 10 * time.Second
	listenerInterval = time.Second
)

// enter starts the listener. It needs a call of leave.
func (s *listenerState) enter() {
	if s.listener == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
	if s.stop == nil {
		var ctx context.Context
		ctx, s.stop = context.WithCancel(context.Background())
		go s.run(ctx)
	}
}

func (s *listenerState) leave() {
	if s.listener == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	if s.users > 0 {
		return
	}
	time.AfterFunc(listenerLinger, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.users == 0 && s.stop != nil {
			s.stop()
			s.stop = nil
		}
	})
}

// listens reports whether a notification would arrive.
func (s *listenerState) listens() bool { return s.on.Load() > 0 }

func (s *listenerState) run(ctx context.Context) {
	for {
		on := int32(0)
		// The error is ignored, because waiters poll until Listen succeeds again.
		_ = s.listener.Listen(ctx, channel, func(payload string) {
			if on == 0 {
				on = s.on.Add(1)
			}
			s.notify(payload)
		})
		if on > 0 {
			s.on.Add(-1)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(listenerInterval):
		}
	}
}

// PoolListener returns a [Listener] on a connection of db. Waiting callers poll instead if the driver isn't pgx's for
// database/sql, if db is limited to fewer than three connections, or if a pooler shares sessions.
func PoolListener(db *sql.DB) Listener {
	if db == nil {
		return nil
	}
	return &poolListener{db: db}
}

type poolListener struct {
	db   *sql.DB
	next atomic.Int64 // not before this time, in seconds since 1970
}

// notifications waits for the next notification on a connection.
type notifications = func(context.Context) (channel, payload string, err error)

const (
	// leastForListener counts a connection for the listener, one for its proof, and one for the work.
	leastForListener = 3

	connLimit     = time.Second     // how long the listener waits for a connection
	probeLimit    = 2 * time.Second // how long the test may take that the connection gets notifications
	yieldInterval = time.Second     // how often the listener checks whether other callers need its connection
	pollInterval  = time.Minute     // how long waiters poll after the listener has failed, before it tries again
)

var (
	errDeaf = errors.New("lease: a listening connection of the pool gets no notification, as behind a pooler that " +
		"shares sessions; waiters poll")
	errTaken = errors.New("lease: the pool has no connection to spare for a listener; allow 3 or more " +
		"(SetMaxOpenConns)")
)

// Listen returns at once after a failure, and pauses at the beginning of the next call instead: while a call runs,
// waiting callers may rely on notifications.
func (l *poolListener) Listen(ctx context.Context, channel string, notify func(payload string)) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(time.Unix(l.next.Load(), 0))):
	}
	err := l.listen(ctx, channel, notify)
	if errors.Is(err, errDeaf) || errors.Is(err, errTaken) {
		l.next.Store(time.Now().Add(pollInterval).Unix())
	}
	return err
}

func (l *poolListener) listen(ctx context.Context, channel string, notify func(payload string)) error {
	if most := l.db.Stats().MaxOpenConnections; most > 0 && most < leastForListener {
		return errTaken
	}
	conn, err := l.conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = errDeaf
	raw := conn.Raw(func(c any) error {
		base, ok := c.(driver.Conn)
		if !ok {
			return nil
		}
		if wait := basedriver.Notifications(base); wait != nil {
			err = l.hear(ctx, base, wait, channel, notify)
			return driver.ErrBadConn // the connection still listens, so the pool must close it
		}
		return nil
	})
	if err == nil {
		return raw
	}
	return err
}

// hear begins to listen, and proves that notifications arrive: a pooler that shares sessions would leave the LISTEN
// with another client's session.
func (l *poolListener) hear(
	ctx context.Context, base driver.Conn, wait notifications, channel string, notify func(payload string),
) error {
	proof := newLockID()
	limited, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	listen, send := "LISTEN "+channel, "SELECT pg_catalog.pg_notify('"+channel+"', '"+proof+"')"
	if _, err := basedriver.Exec(trusted.Context(limited, listen), base, listen, nil); err != nil {
		return err
	}
	defer unlisten(ctx, base, channel)
	// The notification is sent on another connection, because even a pooler that shares sessions delivers a
	// notification to its sender.
	if _, err := l.db.ExecContext(trusted.Context(limited, send), send); err != nil {
		return errTaken
	}
	for heard := ""; heard != proof; {
		var err error
		if _, heard, err = wait(limited); err != nil {
			return errDeaf
		}
	}
	notify("")
	return l.pass(ctx, wait, notify)
}

// unlisten ends the listening, because closing the connection may return it to a pool of pgx.
func unlisten(ctx context.Context, base driver.Conn, channel string) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), connLimit)
	defer cancel()
	unlisten := "UNLISTEN " + channel
	_, _ = basedriver.Exec(trusted.Context(limited, unlisten), base, unlisten, nil) // else it is lost
}

// pass forwards notifications until other callers need the connection.
func (l *poolListener) pass(ctx context.Context, wait notifications, notify func(payload string)) error {
	before := l.db.Stats().WaitCount
	for {
		limited, cancel := ctx, context.CancelFunc(func() {})
		if l.db.Stats().MaxOpenConnections > 0 {
			limited, cancel = context.WithTimeout(ctx, yieldInterval)
		}
		_, payload, err := wait(limited)
		late := limited.Err() != nil && ctx.Err() == nil
		cancel()
		switch now := l.db.Stats(); {
		case err == nil:
			notify(payload)
		case !late:
			return err
		case now.InUse < now.MaxOpenConnections:
			before = now.WaitCount
		case now.WaitCount > before:
			return errTaken
		}
	}
}

// conn waits only shortly for a connection, because other callers may wait for a lease.
func (l *poolListener) conn(ctx context.Context) (*sql.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, connLimit)
	defer cancel()
	conn, err := l.db.Conn(limited)
	if err != nil && limited.Err() != nil {
		return nil, errTaken
	}
	return conn, err
}
