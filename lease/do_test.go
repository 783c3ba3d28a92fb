package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

func TestDo(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		failed := errors.New("failed")
		for name, f := range map[string]func() error{
			"nil":   func() error { return nil },
			"error": func() error { return failed },
			"panic": func() error { panic("over") },
		} {
			var ctx context.Context
			var err error
			panicked := func() (panicked any) {
				defer func() { panicked = recover() }()
				err = leases.Do(t.Context(), "k", func(within context.Context) error {
					ctx = within
					if _, ok := sqlfence.FenceFrom(ctx, "k"); !ok || ctx.Err() != nil || free(t, leases, "k") {
						t.Errorf("%s: f runs without the lease: %v", name, ctx.Err())
					}
					return f()
				})
				return nil
			}()
			if ctx == nil || !errors.Is(context.Cause(ctx), lease.ErrReleased) || !free(t, leases, "k") {
				t.Errorf("%s: the lease isn't released", name)
			}
			if (panicked != nil) != (name == "panic") || (err != nil) != (name == "error") || err != nil && !errors.Is(err, failed) {
				t.Errorf("%s: %v, panic: %v", name, err, panicked)
			}
		}
		held := acquire(t, leases, "k")
		err := leases.Do(t.Context(), "k", func(context.Context) error { t.Error("called without the lease"); return nil }, lease.Retries(0))
		if !errors.Is(err, lease.ErrHeld) {
			t.Errorf("held by another: %v", err)
		}
		release(t, held)
	})
}

// Do extends the lease, so the lease lives longer than its TTL.
func TestDoBeats(t *testing.T) {
	for _, test := range []struct {
		name  string
		terms []lease.Term
		want  int // in 20 s
	}{
		{"a third of the ttl", []lease.Term{lease.TTL(3 * time.Second)}, 19},
		{"Heartbeat", []lease.Term{lease.TTL(3 * time.Second), lease.Heartbeat(2 * time.Second)}, 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, d *database) {
				leases := d.ready(t)
				err := leases.Do(t.Context(), "k", func(ctx context.Context) error {
					d.Sent()
					time.Sleep(20*time.Second - 1)
					beats := 0
					for _, c := range d.Sent() {
						if isExtend(c) {
							beats++
						}
					}
					if beats != test.want || free(t, leases, "k") {
						t.Errorf("%d heartbeats, want %d", beats, test.want)
					}
					return ctx.Err()
				}, test.terms...)
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Do repeats failed heartbeats until the lease ends. Then the lease is lost.
func TestDoLoses(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		failed := errors.New("failed")
		start := time.Now()
		err := leases.Do(t.Context(), "k", func(ctx context.Context) error {
			d.failing(func(context.Context, fakedb.Call) error { return errLost })
			<-ctx.Done()
			took(t, start, 6*time.Second)
			if cause := context.Cause(ctx); !errors.Is(cause, lease.ErrLeaseLost) || !errors.Is(cause, errLost) {
				t.Errorf("the cause is %v", cause)
			}
			return failed
		}, lease.TTL(6*time.Second))
		if !errors.Is(err, lease.ErrLeaseLost) || !errors.Is(err, failed) || !errors.Is(err, errLost) {
			t.Errorf("Do: %v", err)
		}
		if n := len(d.Sent()); n < 5 {
			t.Errorf("%d heartbeats", n)
		}
		d.failing(nil)

		// If the database responds again before the lease ends, the lease isn't lost.
		err = leases.Do(t.Context(), "other", func(ctx context.Context) error {
			d.failing(func(context.Context, fakedb.Call) error { return errLost })
			time.Sleep(5 * time.Second)
			d.failing(nil)
			time.Sleep(time.Hour)
			return ctx.Err()
		}, lease.TTL(6*time.Second))
		if err != nil {
			t.Errorf("a database that came back: %v", err)
		}
	})
}

// If the work returns the cause of its context's end, the error reports the cause only once.
func TestDoTellsALossOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		for name, f := range map[string]func(cause error) error{
			"the cause":   func(cause error) error { return cause },
			"wraps it":    func(cause error) error { return fmt.Errorf("work: %w", cause) },
			"joins it":    func(cause error) error { return errors.Join(errors.New("work"), cause) },
			"its context": func(error) error { return context.Canceled },
			"wraps that":  func(error) error { return fmt.Errorf("work: %w", context.Canceled) },
			"both":        func(cause error) error { return fmt.Errorf("work: %w: %w", context.Canceled, cause) },
			"nil":         func(error) error { return nil },
		} {
			err := leases.Do(t.Context(), "k/"+name, func(ctx context.Context) error {
				d.failing(func(ctx context.Context, _ fakedb.Call) error { <-ctx.Done(); return ctx.Err() })
				<-ctx.Done()
				return f(context.Cause(ctx))
			})
			d.failing(nil)
			var lost *lease.LostError
			if !errors.Is(err, lease.ErrLeaseLost) || !errors.As(err, &lost) || strings.Count(err.Error(), "lease: lost") != 1 {
				t.Errorf("%s: %v", name, err)
			}
			if !errors.Is(err, sqlfence.ErrStale) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want ErrStale, and not the end of a context, the heartbeat's or another", name, err)
			}
		}
	})
}

// If the caller's context ends, and the lease is lost before the work returns, Do returns both errors.
func TestDoIsGivenUpBeforeTheLoss(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		ctx, cancel := context.WithCancel(t.Context())
		err := leases.Do(ctx, "k", func(ctx context.Context) error {
			cancel()
			d.failing(func(context.Context, fakedb.Call) error { return errLost })
			time.Sleep(time.Hour)
			return ctx.Err()
		})
		d.failing(nil)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, lease.ErrLeaseLost) {
			t.Errorf("Do: %v", err)
		}
	})
}

// An operation that begins with a lost lease's context fails with the loss of that lease.
func TestDoWithinALease(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		outer := acquire(t, leases, "outer")
		err := leases.Do(outer.Context(), "inner", func(ctx context.Context) error {
			if err := leases.Release(t.Context(), outer.LockID()); err != nil {
				t.Error(err)
			}
			_ = outer.Extend(t.Context(), time.Hour)
			<-ctx.Done()
			return ctx.Err()
		})
		for what, err := range map[string]error{"during": err, "after": leases.Do(outer.Context(), "inner", nil)} {
			var lost *lease.LostError
			if !errors.As(err, &lost) || lost.Token != outer.Token() || errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// A heartbeat on an unresponsive connection is given up, so that the next heartbeat can use another connection.
func TestDoGivesHeartbeatsUp(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		stuck := true
		d.failing(func(ctx context.Context, c fakedb.Call) error {
			if isExtend(c) && stuck {
				stuck = false
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		err := leases.Do(t.Context(), "k", func(ctx context.Context) error { time.Sleep(time.Hour); return ctx.Err() }, lease.TTL(6*time.Second))
		if err != nil || stuck {
			t.Errorf("Do: %v", err)
		}
	})
}

// A lease that was released by its id ends the work as soon as Do notices.
func TestDoNoticesALoss(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		takeAway := func() {
			info, ok, err := leases.Lookup(t.Context(), "k")
			if err != nil || !ok {
				t.Errorf("Lookup: %v, %v", ok, err)
			}
			if err := leases.Release(t.Context(), info.LockID); err != nil {
				t.Error(err)
			}
		}
		start := time.Now()
		err := leases.Do(t.Context(), "k", func(ctx context.Context) error { takeAway(); <-ctx.Done(); return nil }, lease.TTL(6*time.Second))
		if !errors.Is(err, lease.ErrLeaseLost) || !errors.Is(err, lease.ErrNotHeld) {
			t.Errorf("at a heartbeat: %v", err)
		}
		took(t, start, 2*time.Second)
		err = leases.Do(t.Context(), "k", func(ctx context.Context) error { takeAway(); return nil })
		if !errors.Is(err, lease.ErrLeaseLost) || !errors.Is(err, lease.ErrNotHeld) {
			t.Errorf("at the release: %v", err)
		}
	})
}

// Do returns the work's own result although the release failed, and logs the failure.
func TestDoLogsAFailedRelease(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		err := leases.Do(t.Context(), "k", func(context.Context) error {
			d.failing(func(context.Context, fakedb.Call) error { return errLost })
			return nil
		})
		if got := d.logged.String(); err != nil || !strings.Contains(got, "a release failed") || !strings.Contains(got, "connection lost") {
			t.Errorf("Do: %v, logged %s", err, got)
		}
		d.failing(nil)
	})
}

// Do may take over the owner's earlier lease shortly before its end, and extends it in time.
func TestDoResumes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		acquire(t, leases, "k", lease.Resume("me"), lease.TTL(time.Second))
		err := leases.Do(t.Context(), "k", func(ctx context.Context) error {
			time.Sleep(time.Minute)
			return ctx.Err()
		}, lease.Resume("me"))
		if err != nil {
			t.Error(err)
		}
	})
}
