package lease

import (
	"context"
	"time"

	"github.com/sqlfence/sqlfence"
)

// An Observer receives the events of leases, for metrics and traces, except from methods that take a lock id. It runs
// on the goroutine of the call, or for Lost on a new goroutine. It must be safe for concurrent use, must return soon
// and must not panic. ctx is the context of the call; for Lost, of the lease without cancellation.
type Observer func(ctx context.Context, e Event)

// An Event is what happened to a lease.
type Event struct {
	Kind EventKind
	Key  string // normalized

	Token  sqlfence.Token // zero for Contended
	Holder string         // from [Holder] or [Resume], for Contended of the current holder; may be empty
	Until  time.Time      // when the lease ends or ended, by the server's clock; zero if unknown

	// Attempts and Waited, the time since the call began, are set for Acquired and Contended.
	Attempts int
	Waited   time.Duration

	Err error // for Lost a [*LostError], for Released the error of the release or nil
}

// EventKind is the kind of an [Event].
type EventKind int

const (
	Acquired  EventKind = iota + 1 // a lease was acquired or resumed
	Contended                      // another holder has the lease
	Extended                       // a lease was extended, for example by a heartbeat
	Released                       // the holder released the lease
	Lost                           // a lease ended before its holder released it
)

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

func (l *Lease) observe(ctx context.Context, kind EventKind, err error) {
	if len(l.leases.options.observers) == 0 {
		return
	}
	l.leases.tell(ctx, Event{Kind: kind, Key: l.info.Key, Token: l.info.Token, Holder: l.info.Holder,
		Until: l.ExpiresAt(), Err: err})
}

// observe reports an attempt: the lease l, or nil and the outcome o. A lease that is free by now is not reported,
// because the attempt is repeated.
func (m *Leases) observe(ctx context.Context, a *acquisition, l *Lease, o *outcome) {
	if len(m.options.observers) == 0 {
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
	for _, observe := range m.options.observers {
		observe(ctx, e)
	}
}
