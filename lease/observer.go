package lease

import (
	"context"
	"time"

	"github.com/sqlfence/sqlfence"
)

// An Observer receives events about the leases that [Leases.Acquire], [Leases.TryAcquire]
// and [Leases.Do] ask for, for metrics and traces. It is called on the goroutine of the
// call, before that returns, and for Lost on one of its own; so it may run on several
// goroutines at once, must be safe for that, and quick. It must not panic. The context is
// that of the call; for Lost it is the one that the lease was acquired with, without its
// end.
//
// Calls by lock id, such as [Leases.Release], make no events.
type Observer func(ctx context.Context, e Event)

// An Event is what an [Observer] receives.
type Event struct {
	Kind EventKind
	Key  string // normalized

	// Token is the lease's fencing token; zero for Contended.
	Token sqlfence.Token
	// Holder is the name that the holder of the lease gave by [Holder], or the id of [Resume]; for Contended that
	// is another. It may be empty.
	Holder string
	// Until is when the lease ends, or would have ended, by the server's clock unless it is
	// extended; zero for Contended if that is unknown.
	Until time.Time

	// Attempts is how often the call has asked the database so far; Waited is how long ago
	// it began. They are zero but for Acquired and Contended.
	Attempts int
	Waited   time.Duration

	// Err is a [*LostError] for Lost, and for Released why it isn't known whether the
	// database has released the lease; else nil.
	Err error
}

// EventKind is the kind of an [Event].
type EventKind int

const (
	// Acquired: a call got the lease, or a call resumed it.
	Acquired EventKind = iota + 1
	// Contended: an attempt found that another holds the lease.
	Contended
	// Extended: a lease was extended, also by a heartbeat.
	Extended
	// Released: a holder released its lease.
	Released
	// Lost: a lease ended before its holder released it.
	Lost
)

// String returns the name of the kind, in lower case.
func (k EventKind) String() string {
	switch k {
	case Acquired:
		return "acquired"
	case Contended:
		return "contended"
	case Extended:
		return "extended"
	case Released:
		return "released"
	case Lost:
		return "lost"
	}
	return "unknown"
}

// observe tells the observers of an event of the lease.
func (l *Lease) observe(ctx context.Context, kind EventKind, err error) {
	if len(l.leases.observers) == 0 {
		return
	}
	l.leases.tell(ctx, Event{Kind: kind, Key: l.info.Key, Token: l.info.Token, Holder: l.info.Holder,
		Until: l.ExpiresAt(), Err: err})
}

// observe tells the observers what an attempt came to: the lease, or nil and what stands
// in its way.
func (m *Leases) observe(ctx context.Context, a *acquisition, l *Lease, o *outcome) {
	if len(m.observers) == 0 {
		return
	}
	e := Event{Kind: Acquired, Key: a.key, Attempts: a.attempts, Waited: time.Since(a.began)}
	switch {
	case l != nil:
		e.Token, e.Holder, e.Until = l.info.Token, l.info.Holder, l.ExpiresAt()
	case o.live:
		e.Kind, e.Holder = Contended, shown(o.holder)
		if o.until.Valid {
			e.Until = time.UnixMicro(o.until.Int64)
		}
	default: // free by now
		return
	}
	m.tell(ctx, e)
}

func (m *Leases) tell(ctx context.Context, e Event) {
	for _, observe := range m.observers {
		observe(ctx, e)
	}
}
