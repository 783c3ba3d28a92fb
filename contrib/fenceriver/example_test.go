package fenceriver_test

import (
	"context"
	"database/sql"
	"log"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fenceriver"
)

// ReportArgs are the arguments of a job that makes a report.
type ReportArgs struct{}

func (ReportArgs) Kind() string { return "report" }

// Reporter makes reports.
type Reporter struct {
	river.WorkerDefaults[ReportArgs]
	db *sql.DB // fenced
}

func (w *Reporter) Work(ctx context.Context, _ *river.Job[ReportArgs]) error {
	_, err := w.db.ExecContext(ctx, "INSERT INTO results (made_at, orders) SELECT now(), count(*) FROM orders")
	return err // ErrStale if the job was taken from this attempt
}

// River's own statements run on a pool of pgx, and what workers write is fenced.
func Example() {
	ctx := context.Background()
	const dsn = "postgres://localhost/shop"
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		log.Fatal(err)
	}
	db, err := sqlfence.Open("pgx", dsn,
		sqlfence.WithTable("river_job", sqlfence.Key("id"), sqlfence.Claim("claim")),
		sqlfence.WithTable("results", sqlfence.ClaimOf("river_job")))
	if err != nil {
		log.Fatal(err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &Reporter{db: db})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:     map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}},
		Workers:    workers,
		Middleware: []rivertype.Middleware{fenceriver.Middleware(db.QueryRowContext)},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Start(ctx); err != nil {
		log.Fatal(err)
	}
}
