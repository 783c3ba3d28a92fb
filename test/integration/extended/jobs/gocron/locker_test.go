package gocron_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/sqlfence/sqlfence/contrib/fencegocron"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/integration/zombie"
)

// often is the interval of a job whose next run a test waits for.
var often = gocron.DurationJob(20 * time.Millisecond)

// start starts a scheduler that stops with the test.
func start(t *testing.T, locker *fencegocron.Locker, when gocron.JobDefinition, run func(ctx context.Context) error,
	opts ...gocron.JobOption,
) {
	t.Helper()
	scheduler, err := schedule(locker, when, run, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := scheduler.Shutdown(); err != nil {
			t.Error(err)
		}
	})
}

// Process A is paused in its job until its lease has ended, and process B runs the job. A's late write must not
// overwrite B's.
func TestLockerZombie(t *testing.T) {
	for _, fence := range []bool{false, true} {
		b, dsn := zombie.NewBase(t)
		db := b.Fenced(t, dsn, table)
		locker := fencegocron.NewLocker(harness.NewLeases(t, db))
		said := zombie.Play(t, dsn, fence, func() {
			wrote := make(chan error, 1)
			start(t, locker, often, func(ctx context.Context) error {
				err := zombie.Write(ctx, db, "B")
				select {
				case wrote <- err:
				default:
				}
				<-ctx.Done() // B keeps the job until the test ends
				return err
			})
			if err := <-wrote; err != nil {
				t.Fatal(err)
			}
		})
		zombie.Check(t, db, fence, said)
	}
}

// A job that another process is running is skipped without an error, and runs after the other process has finished.
func TestLockerSkips(t *testing.T) {
	b, dsn := zombie.NewBase(t)
	leases := harness.NewLeases(t, b.Fenced(t, dsn, table))
	other := harness.MustAcquire(t, leases, "report")
	skipped, ran := make(chan error, 1), make(chan struct{}, 1)
	start(t, fencegocron.NewLocker(leases), often, func(ctx context.Context) error {
		select {
		case ran <- struct{}{}:
		default:
		}
		return nil
	}, gocron.WithEventListeners(
		gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
			select {
			case skipped <- err:
			default:
			}
		}),
		gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { t.Error(err) })))
	if err := <-skipped; !errors.Is(err, lease.ErrHeld) {
		t.Error(err)
	}
	select {
	case <-ran:
		t.Error("it ran while another process had the lease")
	default:
	}
	harness.MustRelease(t, other)
	<-ran
}

// Under MinHold a second process whose clock is behind doesn't run the job again.
func TestLockerRunsOnce(t *testing.T) {
	b, dsn := zombie.NewBase(t)
	leases := harness.NewLeases(t, b.Fenced(t, dsn, table))
	locker := fencegocron.NewLocker(leases, lease.MinHold(time.Hour))
	lock, err := locker.Lock(t.Context(), "report")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := fencegocron.NewLocker(leases).Lock(t.Context(), "report"); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("the second process: %v", err)
	}
}

// A job whose name differs from the task's has no lease for the task. The task fails before it begins.
func TestLockerTaskWithoutLease(t *testing.T) {
	b, dsn := zombie.NewBase(t)
	locker := fencegocron.NewLocker(harness.NewLeases(t, b.Fenced(t, dsn, table)))
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := scheduler.Shutdown(); err != nil {
			t.Error(err)
		}
	}()
	failed := make(chan error, 1)
	_, err = scheduler.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
		locker.Task("report", func(context.Context) error {
			t.Error("it ran")
			return nil
		}),
		gocron.WithName("raport"),
		gocron.WithEventListeners(gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { failed <- err })))
	if err != nil {
		t.Fatal(err)
	}
	scheduler.Start()
	if err := <-failed; !errors.Is(err, lease.ErrNotHeld) {
		t.Error(err)
	}
}
