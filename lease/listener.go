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
	// returns why. It calls heard with the payload of each notification, and with
	// an empty one when it has begun to listen, since it can't know what it has
	// missed. It must not call heard after it has returned, nor concurrently.
	// When it returns for another reason than ctx it is called again.
	Listen(ctx context.Context, channel string, heard func(payload string)) error
}

// hearing keeps a listener busy while somebody waits, and a little longer.
type hearing struct {
	listener Listener
	heard    func(payload string)
	on       atomic.Int32 // over 0: a release would be heard

	mu    sync.Mutex
	users int
	stop  context.CancelFunc // nil while it doesn't run
}

const (
	hearingLinger = 10 * time.Second
	hearingPause  = time.Second
)

// enter begins to listen. It needs a call of leave.
func (h *hearing) enter() {
	if h.listener == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.users++
	if h.stop == nil {
		var ctx context.Context
		ctx, h.stop = context.WithCancel(context.Background())
		go h.run(ctx)
	}
}

func (h *hearing) leave() {
	if h.listener == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.users--
	if h.users > 0 {
		return
	}
	time.AfterFunc(hearingLinger, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.users == 0 && h.stop != nil {
			h.stop()
			h.stop = nil
		}
	})
}

func (h *hearing) run(ctx context.Context) {
	for {
		on := int32(0)
		// What it fails with is of no interest: meanwhile the waiters poll.
		_ = h.listener.Listen(ctx, channel, func(payload string) {
			if on == 0 {
				on = h.on.Add(1)
			}
			h.heard(payload)
		})
		if on > 0 {
			h.on.Add(-1)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(hearingPause):
		}
	}
}
