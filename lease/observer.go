package lease

import (
	"context"
	"time"

	"github.com/sqlfence/sqlfence"
)

// An Observer receives the events of leases, except from methods that take a lock id. It runs on the goroutine of the
// call, with its context; for Lost, on a new goroutine. It must be safe for concurrent use, must return soon and must
// not panic.
type Observer func(ctx context.Context, e Event)

// An Event is what happened to a lease.
type Event struct {
	Kind EventKind
	Key  string // normalized

	Token  sqlfence.Token // zero for Contended
	Holder string         // for Contended the current one; may be empty
	Until  time.Time      // the end of the lease, by the server's clock; zero if unknown

	Attempts int           // for Acquired and Contended
	Waited   time.Duration // since the call began, for Acquired and Contended

	Err error // for Lost a [*LostError], for Released the release's or nil
}

type EventKind int

const (
	Acquired  EventKind = iota + 1 // acquired or resumed
	Contended                      // another holder has the lease
	Extended                       // for example by a heartbeat
	Released                       // by the holder
	Lost                           // ended before its release
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
