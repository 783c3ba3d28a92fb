package temporal_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fencetemporal"
	"github.com/sqlfence/sqlfence/test/integration/zombie"
	"github.com/sqlfence/sqlfence/tokens"
)

func TestMain(m *testing.M) { zombie.Main(m, workerA) }

// table registers the table that the activities write.
var table = sqlfence.WithTable("results", sqlfence.Key("job"), sqlfence.Ledger())

// options configures a Temporal worker with fencetemporal's interceptor.
func options(store *tokens.Store) worker.Options {
	return worker.Options{Interceptors: []interceptor.WorkerInterceptor{
		fencetemporal.Interceptor(store, func(_ context.Context, args []any) string { return args[0].(string) }),
	}}
}

// suite returns a test suite that logs nothing.
func suite() *testsuite.WorkflowTestSuite {
	s := new(testsuite.WorkflowTestSuite)
	s.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	return s
}

// run runs an activity once in Temporal's test environment.
func run(db *sql.DB, activity func(ctx context.Context, name string) error) error {
	store, err := tokens.New(db)
	if err != nil {
		return err
	}
	env := suite().NewTestActivityEnvironment()
	env.SetTestTimeout(time.Hour)
	env.SetWorkerOptions(options(store))
	env.RegisterActivity(activity)
	_, err = env.ExecuteActivity(activity, "results/1")
	return err
}

// workerA runs the activity, pauses inside it, and writes after B has written.
func workerA(w *zombie.Worker) error {
	fenced, err := sqlfence.Open("pgx", w.DSN, table)
	if err != nil {
		return err
	}
	db := fenced
	if !w.Fenced {
		if db, err = sql.Open("pgx", w.DSN); err != nil {
			return err
		}
	}
	if os.Getenv("SQLFENCE_TEMPORAL_QUEUE") != "" {
		return serverA(w, fenced, db)
	}
	var wrote error
	err = run(fenced, func(ctx context.Context, _ string) error {
		w.Pause()
		wrote = zombie.Write(ctx, db, "A")
		return wrote
	})
	if refused := isRefused(err); refused != w.Fenced {
		return fmt.Errorf("the attempt ends with %v", err)
	}
	w.Say(zombie.Outcome(wrote))
	w.Wait()
	return nil
}
