package fencegocron_test

import (
	"context"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fencegocron"
	"github.com/sqlfence/sqlfence/lease"
)

// Each node has this scheduler, and one of them makes the report, every hour.
func Example() {
	db, err := sqlfence.Open("pgx", "postgres://localhost/shop",
		sqlfence.WithTable("reports", sqlfence.Resource("report")))
	if err != nil {
		log.Fatal(err)
	}
	leases, err := lease.New(db)
	if err != nil {
		log.Fatal(err)
	}
	locker := fencegocron.NewLocker(leases, lease.MinHold(55*time.Minute))
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		log.Fatal(err)
	}
	_, err = scheduler.NewJob(gocron.CronJob("0 * * * *", false),
		locker.Task("report", func(ctx context.Context) error {
			_, err := db.ExecContext(ctx, "INSERT INTO reports (made_at, orders) SELECT now(), count(*) FROM orders")
			return err
		}), gocron.WithName("report"))
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
}

// The leader of an election runs all jobs.
func ExampleElector() {
	election, err := lease.NewElection("cron", lease.Callbacks{}) // the program must call election.Run
	if err != nil {
		log.Fatal(err)
	}
	elector := fencegocron.NewElector(election)
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		log.Fatal(err)
	}
	_, err = scheduler.NewJob(gocron.DurationJob(time.Minute), elector.Task(func(ctx context.Context) error {
		return nil // writes with ctx
	}))
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
}
