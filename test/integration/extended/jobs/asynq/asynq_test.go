package asynq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	client "github.com/redis/go-redis/v9"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fenceasynq"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/integration/zombie"
	"github.com/sqlfence/sqlfence/tokens"
)

// enqueue adds the task to the queue. The queue retains completed tasks, so that tests can read the tasks' state.
func enqueue(t *testing.T) *asynq.Inspector {
	t.Helper()
	c := asynq.NewClient(redis())
	defer c.Close()
	_, err := c.EnqueueContext(t.Context(), asynq.NewTask("write", []byte("1")), asynq.TaskID("1"),
		asynq.Retention(time.Hour), asynq.MaxRetry(5))
	if err != nil {
		t.Fatal(err)
	}
	inspector := asynq.NewInspector(redis())
	t.Cleanup(func() { _ = inspector.Close() })
	return inspector
}

// task returns asynq's information about the task.
func task(t *testing.T, inspector *asynq.Inspector) *asynq.TaskInfo {
	t.Helper()
	info, err := inspector.GetTaskInfo("default", "1")
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// setUp creates the ledger.
func setUp(t *testing.T, b harness.Base, dsn string) {
	t.Helper()
	store, err := tokens.New(b.Raw(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// expireLease waits until asynq gives the task to another worker: 30 s for the lease, and 30 s for clock differences. A
// short run instead sets the lease's end in Redis into the past, so the resumed worker A still considers its lease
// valid.
func expireLease(t *testing.T) {
	t.Helper()
	if !testing.Short() {
		time.Sleep(time.Minute + 5*time.Second) // asynq shows no earlier sign
		return
	}
	c := client.NewClient(&client.Options{Network: "unix", Addr: redis().Addr})
	defer c.Close()
	const key = "asynq:{default}:lease"
	if n, err := c.ZCard(t.Context(), key).Result(); err != nil || n != 1 {
		t.Fatalf("%d leases, %v", n, err)
	}
	past := float64(time.Now().Add(-2 * time.Minute).Unix())
	if err := c.ZAddXX(t.Context(), key, client.Z{Score: past, Member: "1"}).Err(); err != nil {
		t.Fatal(err)
	}
}

// Worker A is paused in its task until its lease has ended, and asynq gives the task to worker B. A's late write must
// not overwrite B's, and A's return value must not change the task's state.
func TestZombie(t *testing.T) {
	for _, fence := range []bool{false, true} {
		startRedis(t)
		b, dsn := zombie.NewBase(t)
		setUp(t, b, dsn)
		db := b.Fenced(t, dsn, table)
		inspector := enqueue(t)
		finish := make(chan struct{})
		var server *asynq.Server
		said := zombie.Play(t, dsn, fence, func() {
			expireLease(t)
			wrote := make(chan error, 1)
			var err error
			server, err = serve(db, func(ctx context.Context, _ *asynq.Task) error {
				err := zombie.Write(ctx, db, "B")
				wrote <- err
				if !testing.Short() {
					<-finish // B keeps the task while A returns
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := <-wrote; err != nil {
				t.Fatal(err)
			}
			if testing.Short() {
				harness.Eventually(t, "B has done the task", func() bool {
					return task(t, inspector).State == asynq.TaskStateCompleted
				})
			}
		})
		zombie.Check(t, db, fence, said)
		close(finish)
		harness.Eventually(t, "the task is done", func() bool { return task(t, inspector).State == asynq.TaskStateCompleted })
		if info := task(t, inspector); info.Retried != 1 {
			t.Errorf("the task was retried %d times, want 1: %s", info.Retried, info.LastErr)
		}
		server.Shutdown()
	}
}

// If sqlfence refuses an attempt that still owns the task in asynq, asynq runs the task again and counts no failure.
func TestRefusedIsNoFailure(t *testing.T) {
	startRedis(t)
	b, dsn := zombie.NewBase(t)
	setUp(t, b, dsn)
	db := b.Fenced(t, dsn, table)
	store, err := tokens.New(db)
	if err != nil {
		t.Fatal(err)
	}
	inspector := enqueue(t)
	attempts, first := make(chan error, 10), true
	server, err := serve(db, func(ctx context.Context, task *asynq.Task) error {
		if first {
			first = false
			if _, err := store.Issue(ctx, name(task)); err != nil { // another task takes over the name
				t.Error(err)
			}
		}
		err := zombie.Write(ctx, db, "A")
		attempts <- err
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	if err := <-attempts; !errors.Is(err, sqlfence.ErrStale) {
		t.Error(err)
	}
	if err := <-attempts; err != nil {
		t.Error(err)
	}
	harness.Eventually(t, "the task is done", func() bool { return task(t, inspector).State == asynq.TaskStateCompleted })
	if info := task(t, inspector); info.Retried != 0 {
		t.Errorf("it counts as %d retries", info.Retried)
	}
}

func TestIsFailure(t *testing.T) {
	for err, want := range map[error]bool{
		nil:                   false,
		sqlfence.ErrStale:     false,
		lease.ErrLeaseLost:    true, // a *lease.LostError is also ErrStale
		&lease.LostError{}:    false,
		&lease.HeldError{}:    false,
		context.Canceled:      true,
		sqlfence.ErrNoFence:   true,
		sqlfence.ErrNotIssued: true,
	} {
		if got := fenceasynq.IsFailure(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
