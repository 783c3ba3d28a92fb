package lease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

// An observed keeps the events of a test.
type observed struct {
	mu     sync.Mutex
	events []lease.Event
}

func (o *observed) add(ctx context.Context, e lease.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if ctx == nil || ctx.Value(caller{}) != "me" {
		e.Key += " without its context"
	}
	o.events = append(o.events, e)
}

// take returns the events since the last take.
func (o *observed) take() []lease.Event {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	events := o.events
	o.events = nil
	return events
}

func (o *observed) kinds() (kinds []string) {
	for _, e := range o.take() {
		kinds = append(kinds, fmt.Sprintf("%v %s", e.Kind, e.Key))
	}
	return kinds
}

// want compares the kinds of the events since the last take.
func (o *observed) want(t *testing.T, what string, kinds ...string) {
	t.Helper()
	if got := o.kinds(); !slices.Equal(got, kinds) {
		t.Errorf("%s: %q, want %q", what, got, kinds)
	}
}

func TestObserver(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		events, count := new(observed), 0
		leases := d.ready(t, lease.WithObserver(events.add), lease.WithObserver(func(context.Context, lease.Event) { count++ }))
		ctx := context.WithValue(t.Context(), caller{}, "me")
		l, err := leases.Acquire(ctx, "k", lease.Resume("me"), lease.TTL(10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if got := events.take(); len(got) != 1 || got[0] != (lease.Event{Kind: lease.Acquired, Key: "k", Token: l.Token(), Holder: "me", Until: l.ExpiresAt(), Attempts: 1}) {
			t.Errorf("acquired: %+v", got)
		}
		if count != 1 {
			t.Errorf("the second observer was told of %d events", count)
		}
		if err := l.Extend(ctx, time.Minute); err != nil {
			t.Fatal(err)
		}
		if got := events.take(); len(got) != 1 || got[0] != (lease.Event{Kind: lease.Extended, Key: "k", Token: l.Token(), Holder: "me", Until: l.ExpiresAt()}) {
			t.Errorf("extended: %+v", got)
		}
		_, err = leases.Acquire(ctx, "k", lease.Timeout(10*time.Second), lease.Interval(8*time.Second))
		if !errors.Is(err, lease.ErrHeld) {
			t.Error(err)
		}
		if got := events.take(); len(got) != 2 || got[0] != (lease.Event{Kind: lease.Contended, Key: "k", Holder: "me", Until: l.ExpiresAt(), Attempts: 1}) ||
			got[1].Attempts != 2 || got[1].Waited < 7*time.Second {
			t.Errorf("contended: %+v", got)
		}
		if err := l.Release(ctx); err != nil {
			t.Error(err)
		}
		_ = l.Release(ctx)
		events.want(t, "released", "released k")
		if _, _, err := leases.TryAcquire(ctx, ""); err == nil {
			t.Error("an empty key")
		}
		events.want(t, "nothing asked")
	})
}

// The events of Do's lease reach the observer.
func TestObserverOfDo(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		events := new(observed)
		leases := d.ready(t, lease.WithObserver(events.add))
		ctx := context.WithValue(t.Context(), caller{}, "me")
		err := leases.Do(ctx, "k", func(context.Context) error { time.Sleep(15 * time.Second); return nil }, lease.TTL(30*time.Second))
		if err != nil {
			t.Error(err)
		}
		events.want(t, "Do", "acquired k", "extended k", "released k")
		_ = leases.Do(ctx, "k", func(context.Context) error {
			events.take()
			d.failing(func(context.Context, fakedb.Call) error { return errLost })
			return nil
		})
		d.failing(nil)
		if got := events.take(); len(got) != 1 || got[0].Kind != lease.Released || !errors.Is(got[0].Err, errLost) {
			t.Errorf("a release that fails: %+v", got)
		}
	})
}

// A lease that ends by its TTL or is released by another client is reported lost, once.
func TestObserverOfLosses(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		events := new(observed)
		leases := d.ready(t, lease.WithObserver(events.add))
		ctx := context.WithValue(t.Context(), caller{}, "me")
		if _, _, err := leases.TryAcquire(ctx, "k", lease.TTL(time.Second)); err != nil {
			t.Error(err)
		}
		events.take()
		time.Sleep(time.Second)
		if got := events.take(); len(got) != 1 || got[0].Kind != lease.Lost || !errors.Is(got[0].Err, lease.ErrLeaseLost) || got[0].Token.Value != 1 {
			t.Errorf("lost: %+v", got)
		}
		if got := d.logged.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "a lease was lost before its release") || !strings.Contains(got, "key=k") {
			t.Errorf("logged %s", got)
		}
		err := leases.Do(ctx, "k", func(context.Context) error {
			info, _, err := leases.Lookup(ctx, "k")
			return errors.Join(err, leases.Release(ctx, info.LockID))
		})
		if !errors.Is(err, lease.ErrLeaseLost) {
			t.Error(err)
		}
		events.want(t, "taken away", "acquired k", "lost k")
	})
}

func TestEventKinds(t *testing.T) {
	var names []string
	for kind := lease.EventKind(0); kind <= lease.Lost+1; kind++ {
		names = append(names, kind.String())
	}
	if want := []string{"unknown", "acquired", "contended", "extended", "released", "lost", "unknown"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}
