package lease_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

// One candidate leads. When the leader stops, the second candidate leads with the next token.
func TestElectionHasOneLeader(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		a, b := newCandidate(t), newCandidate(t)
		if a.token() != 0 {
			t.Error("a token before the election")
		}
		stopA := a.run(d.ready(t))
		stopB := b.run(d.new(t))
		time.Sleep(10 * time.Minute)
		if a.token() != 1 || !a.IsLeader() || b.token() != 0 {
			t.Errorf("tokens %d and %d", a.token(), b.token())
		}
		if l, err := a.Lease(); err != nil || l.Key() != "jobs" || l.Err() != nil {
			t.Errorf("Lease: %v, %v", l, err)
		}
		if _, err := b.Lease(); !errors.Is(err, lease.ErrNotLeader) {
			t.Errorf("Lease: %v", err)
		}
		a.wantTold("elected")
		stopA()
		a.wantTold("worked: context canceled")
		if _, err := a.Lease(); !errors.Is(err, lease.ErrReleased) || a.token() != 0 {
			t.Errorf("after the end: %v", err)
		}
		time.Sleep(6 * time.Second)
		if b.token() != 2 {
			t.Errorf("the second token is %d", b.token())
		}
		stopB()
		b.wantTold("elected", "worked: context canceled")
		stopA = a.run(d.new(t)) // once more
		if a.token() != 3 {
			t.Errorf("the third token is %d", a.token())
		}
		stopA()
	})
}

// If a leader can't extend its lease, it loses the lease by its process's clock. From then on its writes fail. It
// campaigns again after the work has returned.
func TestElectionLoses(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		c := newCandidate(t)
		winding := make(chan struct{})
		c.works = func(ctx context.Context) { <-ctx.Done(); <-winding }
		stop := c.run(d.ready(t))
		d.failing(func(context.Context, fakedb.Call) error { return errLost })
		start := time.Now()
		time.Sleep(9*time.Second - 1)
		c.wantTold("elected", "short: 3s connection lost")
		if c.token() != 1 {
			t.Error("lost too early")
		}
		time.Sleep(time.Nanosecond)
		c.wantTold("lost: lease: lost")
		var lost *lease.LostError
		if !errors.As(c.lost, &lost) || lost.Token.Value != 1 || !errors.Is(c.lost, errLost) || c.token() != 0 {
			t.Errorf("lost: %v", c.lost)
		}
		_, err := c.Tokens(t.Context(), []string{"jobs"})
		if !errors.Is(err, lease.ErrLeaseLost) || !strings.HasPrefix(err.Error(), `lease: not the leader: key "jobs": lost: `) || !strings.Contains(err.Error(), "connection lost") {
			t.Errorf("Tokens: %v", err)
		}
		took(t, start, 9*time.Second)

		d.failing(nil)
		time.Sleep(time.Hour)
		if c.token() != 0 {
			t.Error("it was elected again before the work had ended")
		}
		close(winding)
		time.Sleep(10 * time.Second)
		if c.token() != 2 {
			t.Errorf("the next token is %d", c.token())
		}
		stop()
		c.wantTold("worked: lease: lost", "elected", "worked: context canceled")
	})
}

// An operator may release the leader's lease by the lock id. Then the leader has lost the lease.
func TestElectionTakenAway(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		c, leases := newCandidate(t), d.ready(t)
		takeAway := func() {
			l, err := c.Lease()
			if err == nil {
				err = leases.Release(t.Context(), l.LockID())
			}
			if err != nil {
				t.Error(err)
			}
		}
		c.quiet = true
		stop := c.run(leases)
		takeAway()
		time.Sleep(3 * time.Second) // until the next heartbeat
		c.wantTold("elected", "lost: lease: lost", "elected")
		takeAway()
		stop() // the leader's release finds this
		c.wantTold("lost: lease: lost")
	})
}

// The candidate is warned once that time is short, and again after a new extension, but not while heartbeats succeed.
func TestElectionIsShortOfTime(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		c := newCandidate(t, lease.TTL(30*time.Second), lease.Margin(2*time.Second), lease.Heartbeat(20*time.Second)) // of 28 s
		stop := c.run(d.ready(t))
		time.Sleep(time.Hour)
		c.wantTold("elected")
		for range 2 {
			d.failing(func(context.Context, fakedb.Call) error { return errLost })
			for told := 0; told == 0; {
				time.Sleep(100 * time.Millisecond)
				c.mu.Lock()
				told = len(c.told)
				c.mu.Unlock()
			}
			time.Sleep(time.Second)
			d.failing(nil)
			time.Sleep(time.Hour)
			c.wantTold("short: 4s connection lost")
		}
		stop()
	})
}

// After a resignation the leader pauses before it campaigns again, so another candidate can be elected.
func TestResignLetsAnotherCandidateLead(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		a, b := newCandidate(t), newCandidate(t)
		a.Resign() // from nothing
		stopA, stopB := a.run(d.ready(t)), b.run(d.new(t))
		a.Resign()
		a.Resign()
		time.Sleep(6 * time.Second)
		a.wantTold("elected", "worked: lease: released")
		b.wantTold("elected")
		if a.token() != 0 || b.token() != 2 {
			t.Errorf("tokens %d and %d", a.token(), b.token())
		}
		time.Sleep(time.Minute)
		stopB()
		time.Sleep(6 * time.Second)
		if a.token() != 3 {
			t.Errorf("who has resigned isn't elected again: %d", a.token())
		}
		stopA()
	})
}

// The leader's work keeps the lease and the token until the work has ended.
func TestElectionWaitsForTheWork(t *testing.T) {
	for name, end := range map[string]func(c *candidate, cancel func()){
		"end":    func(_ *candidate, cancel func()) { cancel() },
		"resign": func(c *candidate, _ func()) { c.Resign() },
	} {
		t.Run(name, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, d *database) {
				c, leases := newCandidate(t), d.ready(t)
				winding := make(chan struct{})
				c.works = func(ctx context.Context) { <-ctx.Done(); <-winding }
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error, 1)
				go func() { ended <- c.Run(ctx, leases) }()
				synctest.Wait()
				end(c, cancel)
				time.Sleep(time.Hour)
				if c.token() != 1 || c.IsLeader() || free(t, leases, "jobs") || len(ended) > 0 {
					t.Errorf("while the work comes to its end: token %d, leads %v", c.token(), c.IsLeader())
				}
				close(winding)
				synctest.Wait()
				if c.token() != 0 || !free(t, leases, "jobs") {
					t.Error("the lease isn't released")
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Work that returns early doesn't end the leadership, and an election may have no work.
func TestElectionWithoutWork(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		e, err := lease.NewElection("jobs", lease.Callbacks{})
		if err != nil {
			t.Fatal(err)
		}
		c := &candidate{Election: e, t: t}
		stop := c.run(d.ready(t))
		time.Sleep(time.Hour)
		if c.token() != 1 || !c.IsLeader() {
			t.Errorf("token %d", c.token())
		}
		d.failing(func(context.Context, fakedb.Call) error { return errLost })
		time.Sleep(time.Minute)
		if c.token() != 0 {
			t.Errorf("token %d after the loss", c.token())
		}
		stop()
		if got := d.logged.String(); !strings.Contains(got, "an attempt to become the leader failed") {
			t.Errorf("logged: %s", got)
		}
	})
}

// A candidate waits under all terms. It gives up an unresponsive connection.
func TestElectionCampaigns(t *testing.T) {
	for name, term := range map[string]lease.Term{
		"default": lease.TTL(9 * time.Second), "Retries": lease.Retries(0), "Timeout": lease.Timeout(time.Second), "Wait": lease.NoWait(),
		"Interval": lease.Interval(time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, d *database) {
				leases := d.ready(t)
				held := acquire(t, leases, "jobs", lease.TTL(time.Hour))
				c := newCandidate(t, term)
				stop := c.run(d.new(t))
				d.Sent()
				time.Sleep(2 * time.Minute)
				if n := d.count(); c.token() != 0 || n < 12 || n > 250 {
					t.Errorf("%d statements in two minutes, token %d", n, c.token())
				}
				var mute atomic.Int32
				d.failing(func(ctx context.Context, call fakedb.Call) error {
					if isAcquire(call) && mute.Add(1) == 1 {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				})
				time.Sleep(6 * time.Second)
				release(t, held)
				time.Sleep(time.Minute)
				if c.token() == 0 || mute.Load() < 2 {
					t.Errorf("not elected; %d attempts since", mute.Load())
				}
				stop()
			})
		})
	}
}

// A permanent failure ends the campaign, and is returned.
func TestRunFails(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		c := newCandidate(t)
		var setup *sqlfence.SetupError
		d.failing(func(context.Context, fakedb.Call) error { return errors.New("no such table: fencing_leases") })
		if err := c.Run(t.Context(), d.new(t)); !errors.As(err, &setup) {
			t.Errorf("without tables: %v", err)
		}
		d.failing(nil)
		leases := d.ready(t)
		stop := c.run(leases)
		if err := c.Run(t.Context(), leases); !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("running already: %v", err)
		}
		stop()
		d.issued(t, "jobs2", sqlfence.MaxToken)
		e, err := lease.NewElection("jobs2", lease.Callbacks{})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Run(t.Context(), leases); !errors.Is(err, sqlfence.ErrTokenLimit) {
			t.Errorf("no token left: %v", err)
		}
		long := d.new(t, lease.WithDefaults(lease.Margin(10*time.Second)))
		if err := c.Run(t.Context(), long); !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("terms that contradict the defaults: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Run(ctx, leases); err != nil || !free(t, leases, "jobs") {
			t.Errorf("a context that has ended: %v", err)
		}
		d.db.Close()
		if err := c.Run(t.Context(), leases); err == nil {
			t.Error("on a closed database it goes on")
		}
	})
	for _, key := range []string{"", "\xff"} {
		if _, err := lease.NewElection(key, lease.Callbacks{}); !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("key %q: %v", key, err)
		}
	}
	if _, err := lease.NewElection("jobs", lease.Callbacks{}, lease.TTL(-1)); !errors.Is(err, lease.ErrInvalid) || !errors.Is(err, sqlfence.ErrInvalid) {
		t.Errorf("a bad term: %v", err)
	}
}

// A callback that panics ends the heartbeats with Run.
func TestElectionThatPanics(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		e, err := lease.NewElection("jobs", lease.Callbacks{Short: func(time.Duration, error) { panic("over") }})
		if err != nil {
			t.Fatal(err)
		}
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if isExtend(c) {
				return errLost
			}
			return nil
		})
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_ = e.Run(t.Context(), leases)
		}()
		d.failing(nil)
		time.Sleep(time.Minute)
		if !free(t, leases, "jobs") || e.IsLeader() {
			t.Error("the lease is kept")
		}
	})
}

// An election has a token only for its key, requested by name or by prefix.
func TestElectionTokens(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		for _, tt := range []struct {
			key   string
			names string
			want  bool
		}{
			{"jobs", "jobs", true}, {"jobs", "books jobs", true}, {"jobs", "books", false}, {"jobs", "job", false}, {"jobs", "jobs/", false},
			{"jobs/7", "jobs/", true}, {"jobs/7", "jobs/7", true}, {"jobs/7", "jobs", false}, {"jobs/7", "job/", false}, {"jobs/7", "", false},
			{"cafe\u0301", "caf\u00e9", true},
		} {
			e, err := lease.NewElection(tt.key, lease.Callbacks{})
			if err != nil {
				t.Fatal(err)
			}
			names := strings.Fields(tt.names)
			if got, err := e.Tokens(t.Context(), names); (err != nil) != tt.want || got != nil {
				t.Errorf("%s, not running: %v, %v", tt.key, got, err)
			}
			c := &candidate{Election: e, t: t}
			stop := c.run(leases)
			if got, err := e.Tokens(t.Context(), names); err != nil || (len(got) == 1) != tt.want {
				t.Errorf("%s asked for %q: %v, %v", tt.key, names, got, err)
			}
			stop()
		}
	})
}
