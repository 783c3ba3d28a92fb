package gocron_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fencegocron"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/integration/zombie"
)

// A job's run presents the token of the leadership under which the run began, and its context ends with this
// leadership. A write after another process has led is refused.
func TestElector(t *testing.T) {
	b, dsn := zombie.NewBase(t)
	election, err := lease.NewElection("report", lease.Callbacks{})
	if err != nil {
		t.Fatal(err)
	}
	// The database's source supplies the current leadership's token, but the token in the run's context takes
	// precedence.
	db := b.Fenced(t, dsn, table, sqlfence.WithTokenSource(election.Tokens))
	leases := harness.NewLeases(t, db)
	elector := fencegocron.NewElector(election)
	if err := elector.IsLeader(t.Context()); !errors.Is(err, lease.ErrNotLeader) {
		t.Errorf("before the election: %v", err)
	}
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	began := make(chan struct{})
	_, err = scheduler.NewJob(often, elector.Task(func(ctx context.Context) error {
		if err := zombie.Write(ctx, db, "A"); err != nil {
			t.Error(err)
		}
		close(began)
		<-ctx.Done()
		next := harness.MustAcquire(t, leases, "report")
		defer harness.MustRelease(t, next)
		if err := zombie.Write(next.Context(), db, "B"); err != nil {
			t.Error(err)
		}
		return zombie.Write(ctx, db, "A")
	}), gocron.WithSingletonMode(gocron.LimitModeReschedule),
		gocron.WithEventListeners(gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { failed <- err })))
	if err != nil {
		t.Fatal(err)
	}
	scheduler.Start()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	running := harness.Go(func() error { return election.Run(ctx, leases) })
	<-began
	cancel()
	if err := <-failed; !errors.Is(err, sqlfence.ErrStale) {
		t.Error(err)
	}
	if wrote := zombie.Wrote(t, db); wrote != "B" {
		t.Errorf("the result is %s's", wrote)
	}
	if err := scheduler.Shutdown(); err != nil {
		t.Error(err)
	}
	if err := running.Wait(); err != nil {
		t.Error(err)
	}
}
