package river_test

import (
	"context"
	"database/sql"
	"log/slog"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fenceriver"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/integration/zombie"
)

func TestMain(m *testing.M) { zombie.Main(m, workerA) }

// tables registers River's job table and the table that the workers write.
var tables = []sqlfence.Option{
	sqlfence.WithTable("river_job", sqlfence.Key("id"), sqlfence.Claim("claim")),
	sqlfence.WithTable("results", sqlfence.ClaimOf("river_job")),
}

// args are the job's arguments.
type args struct{}

func (args) Kind() string { return "write" }

// A job is the function that a worker runs.
type job func(ctx context.Context, j *river.Job[args]) error

type worker struct {
	river.WorkerDefaults[args]
	work job
}

func (w *worker) Work(ctx context.Context, j *river.Job[args]) error { return w.work(ctx, j) }

// newConfig configures a client that works the queue and may become River's leader.
func newConfig(work job, middleware ...rivertype.Middleware) *river.Config {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{work: work})
	return &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}},
		FetchPollInterval: 100 * time.Millisecond,
		Workers:           workers,
		JobTimeout:        -1, // no timeout, because the job waits for the test
		Middleware:        middleware,
		Logger:            slog.New(slog.DiscardHandler),
	}
}

// workerA takes the job, pauses inside it, writes after B has written, and returns success to River.
func workerA(w *zombie.Worker) error {
	plain, err := sql.Open("pgx", w.DSN)
	if err != nil {
		return err
	}
	db := plain
	ended := make(chan error)
	work := func(ctx context.Context, _ *river.Job[args]) error {
		w.Pause()
		ended <- zombie.Write(ctx, db, "A")
		return nil
	}
	config := newConfig(work)
	if w.Fenced {
		if db, err = sqlfence.Open("pgx", w.DSN, tables...); err != nil {
			return err
		}
		config = newConfig(work, fenceriver.Middleware(db.QueryRowContext))
	}
	config.LeaderElectionDisabled = true
	client, err := river.NewClient(riverdatabasesql.New(plain), config)
	if err != nil {
		return err
	}
	if err := client.Start(context.Background()); err != nil {
		return err
	}
	w.Say(zombie.Outcome(<-ended))
	w.Wait()
	return client.Stop(context.Background()) // waits until River has handled the job's result
}

// A queue is River's job table with one job, and databases for clients of it.
type queue struct {
	t      *testing.T
	plain  *sql.DB
	db     *sql.DB // fenced
	source string
}

func newQueue(t *testing.T) *queue {
	t.Helper()
	b, dsn := zombie.NewBase(t)
	q := &queue{t: t, plain: b.Raw(t, dsn), db: b.Fenced(t, dsn, tables...), source: dsn}
	silent := &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)}
	migrator, err := rivermigrate.New(riverdatabasesql.New(q.plain), silent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	zombie.Exec(t, q.plain, fenceriver.Migration, fenceriver.Migration)
	return q
}

// client returns a River client on the plain database.
func (q *queue) client(config *river.Config) *river.Client[*sql.Tx] {
	q.t.Helper()
	client, err := river.NewClient(riverdatabasesql.New(q.plain), config)
	if err != nil {
		q.t.Fatal(err)
	}
	return client
}

// start starts a client, and returns the function that stops the client.
func (q *queue) start(config *river.Config) (stop func()) {
	q.t.Helper()
	client := q.client(config)
	if err := client.Start(q.t.Context()); err != nil {
		q.t.Fatal(err)
	}
	return func() {
		q.t.Helper()
		if err := client.Stop(q.t.Context()); err != nil {
			q.t.Error(err)
		}
	}
}

// insert inserts the job.
func (q *queue) insert() {
	q.t.Helper()
	if _, err := q.client(newConfig(nil)).Insert(q.t.Context(), args{}, nil); err != nil {
		q.t.Fatal(err)
	}
}

// rescue makes River's rescuer take the job from its worker. By default the rescuer waits an hour.
func (q *queue) rescue() {
	q.t.Helper()
	config := newConfig(nil)
	config.Queues = map[string]river.QueueConfig{"none": {MaxWorkers: 1}}
	config.JobTimeout, config.RescueStuckJobsAfter = time.Millisecond, time.Millisecond
	config.RetryPolicy = atOnce{}
	stop := q.start(config)
	harness.Eventually(q.t, "the job is rescued", func() bool { return q.job() != "running 1, 0 errors" })
	stop()
}

// atOnce is a retry policy without a delay.
type atOnce struct{}

func (atOnce) NextRetry(*rivertype.JobRow) time.Time { return time.Now() }

// job returns the state, the attempt and the number of errors of the job.
func (q *queue) job() (job string) {
	q.t.Helper()
	const query = `SELECT state || ' ' || attempt || ', ' || coalesce(array_length(errors, 1), 0) || ' errors'
		FROM river_job`
	if err := q.plain.QueryRowContext(q.t.Context(), query).Scan(&job); err != nil {
		q.t.Fatal(err)
	}
	return job
}

// want fails the test unless job returns this text.
func (q *queue) want(job string) {
	q.t.Helper()
	if got := q.job(); got != job {
		q.t.Errorf("the job: %s, want %s", got, job)
	}
}
