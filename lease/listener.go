package lease

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// channel receives the key of each released lease.
const channel = "sqlfence_leases"

// A Listener receives PostgreSQL notifications: see [PoolListener] and docs/leases.md.
type Listener interface {
	// Listen executes LISTEN for the channel, calls notify with an empty payload, and then with each notification's
	// payload, until ctx ends or the connection is lost. It is called again after a second. It must not call notify
	// concurrently.
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
	listenerLinger = 10 * time.Second
	listenerPause  = time.Second
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
		// Its error is ignored: until it listens again, waiters poll.
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
