package lease

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// channel is the one that a release notifies, with its key as the payload.
const channel = "sqlfence_leases"

// A Listener hears what PostgreSQL notifies, by a connection of its own. It
// stands between this package and a driver; docs/leases.md shows one for pgx and
// one for lib/pq.
type Listener interface {
	// Listen listens on a channel, until ctx ends or the connection is lost, and
	// returns why. It calls notify with the payload of each notification, and with
	// an empty one when it has begun to listen, since it can't know what it has
	// missed. It must not call notify after it has returned, nor concurrently.
	// When it returns for another reason than ctx it is called again.
	Listen(ctx context.Context, channel string, notify func(payload string)) error
}

// listenerState keeps a listener busy while somebody waits, and a little longer.
type listenerState struct {
	listener Listener
	notify   func(payload string)
	on       atomic.Int32 // over 0: a notification would arrive

	mu    sync.Mutex
	users int
	stop  context.CancelFunc // nil while it doesn't run
}

const (
	listenerLinger = 10 * time.Second
	listenerPause  = time.Second
)

// enter begins to listen. It needs a call of leave.
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
		// What it fails with is of no interest: meanwhile the waiters poll.
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
		case <-time.After(listenerPause):
		}
	}
}
