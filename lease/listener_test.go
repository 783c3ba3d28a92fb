package lease_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence/lease"
)

// A bus is a [lease.Listener] that delivers a test's notifications.
type bus struct {
	mu       sync.Mutex
	notify   func(string)
	fails    chan struct{} // closed: the connection is lost
	channel  string
	started  int
	finished int
}

func (b *bus) Listen(ctx context.Context, channel string, notify func(string)) error {
	b.mu.Lock()
	b.started++
	b.channel, b.notify = channel, notify
	fails := make(chan struct{})
	b.fails = fails
	b.mu.Unlock()
	notify("")
	defer func() {
		b.mu.Lock()
		b.finished++
		b.mu.Unlock()
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-fails:
		return errLost
	}
}

func (b *bus) runs() (started, finished int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.started, b.finished
}

// waiter acquires k in the background, with 12 hours between its attempts, and returns once it waits.
func waiter(t *testing.T, leases *lease.Leases) (got chan *lease.Lease) {
	got = make(chan *lease.Lease, 1)
	go func() {
		l, err := leases.Acquire(t.Context(), "k", lease.Timeout(24*time.Hour), lease.Interval(12*time.Hour))
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	synctest.Wait()
	return got
}

// A notification wakes the waiters of its key. An empty one wakes all waiters.
func TestListener(t *testing.T) {
	for _, payload := range []string{"k", ""} {
		onPostgres(t, func(t *testing.T, d *database) {
			bus := new(bus)
			another, leases := d.ready(t), d.new(t, lease.WithListener(bus))
			held := acquire(t, another, "k", lease.TTL(24*time.Hour))
			if started, _ := bus.runs(); started != 0 {
				t.Error("it listens before anybody waits")
			}
			got := waiter(t, leases)
			if started, _ := bus.runs(); started != 1 || bus.channel != "sqlfence_leases" {
				t.Errorf("it listens %d times, to %q", started, bus.channel)
			}
			release(t, held)
			time.Sleep(time.Hour)
			if isClosed(got) {
				t.Fatal("the waiter was woken by nobody")
			}
			start := time.Now()
			bus.notify("another")
			synctest.Wait()
			bus.notify(payload)
			l := <-got
			took(t, start, 0)
			release(t, l)
			if notified := d.server.notified; len(notified) != 1 || notified[0] != "k" {
				t.Errorf("notified %q, want the release by the one with the listener", notified)
			}
			// The listener stays for some seconds, in case another waiter comes.
			if _, finished := bus.runs(); finished != 0 {
				t.Error("it doesn't linger")
			}
			time.Sleep(11 * time.Second)
			synctest.Wait()
			if started, finished := bus.runs(); started != 1 || finished != 1 {
				t.Errorf("listened %d times, ended %d times", started, finished)
			}
		})
	}
}

// A listener that has lost its connection is called again, and while it isn't
// listening waiters poll.
func TestListenerIsLost(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		bus := new(bus)
		another, leases := d.ready(t), d.new(t, lease.WithListener(bus))
		held := acquire(t, another, "k", lease.TTL(24*time.Hour))
		got := waiter(t, leases)
		close(bus.fails)
		time.Sleep(2 * time.Second)
		if started, finished := bus.runs(); started != 2 || finished != 1 {
			t.Errorf("listened %d times, ended %d times", started, finished)
		}
		d.Sent()
		another2 := waiter(t, leases)
		release(t, held)
		bus.notify("k")
		release(t, <-got)
		release(t, <-another2)
		time.Sleep(11 * time.Second)
		if started, finished := bus.runs(); started != 2 || finished != 2 {
			t.Errorf("at the end: listened %d times, ended %d times", started, finished)
		}
	})
}

// A waiter with a listener hardly polls.
func TestListenerSparesPolling(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		for _, test := range []struct {
			opts []lease.Option
			want int // statements in a minute
		}{
			{nil, 11 + 6},
			{[]lease.Option{lease.WithListener(new(bus))}, 12},
		} {
			leases := d.ready(t, test.opts...)
			held := acquire(t, leases, "k", lease.TTL(time.Hour))
			d.Sent()
			_, err := leases.Acquire(t.Context(), "k", lease.Timeout(time.Minute), lease.Retries(1000), lease.Backoff(100*time.Millisecond))
			if err == nil {
				t.Error("acquired")
			}
			if n := d.count(); len(test.opts) > 0 && n > test.want+2 || len(test.opts) == 0 && n < test.want {
				t.Errorf("%d statements in a minute, want about %d", n, test.want)
			}
			release(t, held)
		}
	})
}

// A release sends a notification while a caller waits for the key, and for some time after.
func TestReleasesNotifyWhereSomebodyWaits(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		leases, waiting := d.ready(t, lease.WithListener(new(bus))), d.new(t, lease.WithListener(new(bus)))
		notified := func(what string, want ...string) {
			t.Helper()
			if got := d.server.notified; !slices.Equal(got, want) {
				t.Errorf("%s: notified %q, want %q", what, got, want)
			}
			d.server.notified = nil
		}
		release(t, acquire(t, leases, "k"))
		notified("nobody waits")
		held := acquire(t, leases, "k", lease.TTL(24*time.Hour))
		if _, ok, err := waiting.TryAcquire(t.Context(), "k"); ok || err != nil {
			t.Error(ok, err)
		}
		if _, err := waiting.Acquire(t.Context(), "k", lease.Retries(0)); !errors.Is(err, lease.ErrHeld) {
			t.Error(err)
		}
		release(t, held)
		notified("nobody has waited")
		for _, c := range []struct {
			waits time.Duration
			terms []lease.Term
		}{
			{4 * time.Hour, []lease.Term{lease.Timeout(24 * time.Hour), lease.Interval(5 * time.Hour)}}, // once more
			{4 * time.Minute, []lease.Term{lease.Timeout(0), lease.Retries(1 << 20)}},
		} {
			held, another := acquire(t, leases, "k", lease.TTL(24*time.Hour)), acquire(t, leases, "another", lease.TTL(24*time.Hour))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); _, _ = waiting.Acquire(ctx, "k", c.terms...) }()
			time.Sleep(c.waits)
			release(t, another)
			notified("another key")
			cancel()
			<-done
			release(t, held)
			notified("somebody waits", "k")
			time.Sleep(6 * time.Hour)
			release(t, acquire(t, leases, "k"))
			notified("somebody has waited long ago")
		}
	})
}

// A waiter marks the lease's row, so that the release sends a notification. If the server refuses the mark, the lease
// has just changed hands: the waiter tries again at once, and then with growing pauses.
func TestWaiterWithoutItsMarkAsksAgain(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		leases := d.ready(t, lease.WithListener(new(bus)))
		held := acquire(t, leases, "k", lease.TTL(24*time.Hour))
		for _, test := range []struct{ refused, want int }{
			{0, 2}, // twice: the listener starts after the first attempt
			{0, 1}, {1, 2}, {2, 3}, {1 << 20, 16},
		} {
			d.server.refused = test.refused
			d.Sent()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = leases.Acquire(ctx, "k", lease.Timeout(24*time.Hour), lease.Interval(time.Hour))
			}()
			time.Sleep(time.Minute)
			if n := d.count(); n != test.want {
				t.Errorf("%d marks are refused: asked %d times in a minute, want %d", test.refused, n, test.want)
			}
			cancel()
			<-done
		}
		release(t, held)
	})
}
