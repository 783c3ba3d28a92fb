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

// often is when a job runs whose turn is awaited.
var often = gocron.DurationJob(20 * time.Millisecond)

// start starts a scheduler for the time of the test.
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

// A process that is stopped in its job past its lease doesn't write over the one that has taken the job over.
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
				<-ctx.Done() // the job is B's until the test ends
				return err
			})
			if err := <-wrote; err != nil {
				t.Fatal(err)
			}
		})
		zombie.Check(t, db, fence, said)
	}
}

// A job that another process runs is skipped, which is no failure, and runs when that has ended.
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

// With MinHold a second process, the clock of which is behind, doesn't run the job again.
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

// A task that runs without its lease, such as under another name, fails before it has begun.
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
