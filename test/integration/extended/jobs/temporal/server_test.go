package temporal_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/zombie"
	"github.com/sqlfence/sqlfence/tokens"
)

// server names the environment variable with the address of a Temporal server, for example one that "temporal server
// start-dev" has started.
const server = "SQLFENCE_TEMPORAL"

// dial returns a client of the Temporal server, and the task queue of the test's current run.
func dial() (c client.Client, queue string, err error) {
	c, err = client.Dial(client.Options{
		HostPort: os.Getenv(server),
		Logger:   log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	return c, os.Getenv("SQLFENCE_TEMPORAL_QUEUE"), err
}

// startActivity starts a worker that runs only the activity, one attempt at a time, so that A doesn't poll while
// paused.
func startActivity(c client.Client, queue string, db *sql.DB, write func(ctx context.Context, name string) error,
) (worker.Worker, error) {
	store, err := tokens.New(db)
	if err != nil {
		return nil, err
	}
	opts := options(store)
	opts.DisableWorkflowWorker, opts.MaxConcurrentActivityExecutionSize = true, 1
	w := worker.New(c, queue, opts)
	w.RegisterActivityWithOptions(write, activity.RegisterOptions{Name: "write"})
	return w, w.Start()
}

// Worker A is paused and sends no heartbeat, so the Temporal server starts a second attempt on worker B. A's late write
// must not overwrite B's, and A's return value must neither fail nor complete the activity.
func TestServerZombie(t *testing.T) {
	if os.Getenv(server) == "" {
		need.Missing(t, "temporal", server+" is not set: the address of a server of Temporal")
	}
	for _, fence := range []bool{false, true} {
		b, dsn := zombie.NewBase(t)
		db := b.Fenced(t, dsn, table)
		newStore(t, b.Raw(t, dsn))
		t.Setenv("SQLFENCE_TEMPORAL_QUEUE", fmt.Sprint("zombie-", time.Now().UnixNano()))
		c, queue, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		flow := func(ctx workflow.Context) error {
			return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
				StartToCloseTimeout: time.Hour,
				HeartbeatTimeout:    2 * time.Second,
				RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 10 * time.Millisecond},
			}), "write", "results/1").Get(ctx, nil)
		}
		flows := worker.New(c, queue, worker.Options{LocalActivityWorkerOnly: true})
		flows.RegisterWorkflow(flow)
		if err := flows.Start(); err != nil {
			t.Fatal(err)
		}
		defer flows.Stop()
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: queue}, flow)
		if err != nil {
			t.Fatal(err)
		}
		wrote, finish := make(chan error, 10), make(chan struct{}) // one write for each attempt of B
		var stop func()
		said := zombie.Play(t, dsn, fence, func() {
			w, err := startActivity(c, queue, db, func(ctx context.Context, _ string) error {
				wrote <- zombie.Write(ctx, db, "B")
				for beat := time.NewTicker(100 * time.Millisecond); ; {
					select {
					case <-finish:
						return nil
					case <-beat.C:
						activity.RecordHeartbeat(ctx)
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			stop = w.Stop
			if err := <-wrote; err != nil {
				t.Fatal(err)
			}
		})
		zombie.Check(t, db, fence, said)
		if d, err := c.DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID()); err != nil {
			t.Error(err)
		} else if pending := d.PendingActivities; len(pending) != 1 || pending[0].Attempt != 2 {
			t.Errorf("after A has returned: %v", pending)
		}
		close(finish)
		if err := run.Get(t.Context(), nil); err != nil || len(wrote) > 0 {
			t.Errorf("B has made %d attempts: %v", 1+len(wrote), err)
		}
		stop()
	}
}

// serverA takes the activity from a Temporal server, pauses inside it, and writes after B has written.
func serverA(w *zombie.Worker, fenced, db *sql.DB) error {
	c, queue, err := dial()
	if err != nil {
		return err
	}
	defer c.Close()
	ended := make(chan error)
	running, err := startActivity(c, queue, fenced, func(ctx context.Context, _ string) error {
		w.Pause()
		err := zombie.Write(ctx, db, "A")
		ended <- err
		return err
	})
	if err != nil {
		return err
	}
	w.Say(zombie.Outcome(<-ended))
	w.Wait()
	running.Stop() // returns after the server has received the result
	return nil
}
