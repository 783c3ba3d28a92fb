package gocron_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fencegocron"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/zombie"
)

func TestMain(m *testing.M) { zombie.Main(m, workerA) }

// table registers the table that the jobs write.
var table = sqlfence.WithTable("results", sqlfence.Resource("report"), sqlfence.Ledger())

// workerA runs the job once, pauses inside it, and writes after B has written.
func workerA(w *zombie.Worker) error {
	open := sql.Open
	if w.Fenced {
		open = func(driver, dsn string) (*sql.DB, error) { return sqlfence.Open(driver, dsn, table) }
	}
	db, err := open("pgx", w.DSN)
	if err != nil {
		return err
	}
	leases, err := lease.New(db)
	if err != nil {
		return err
	}
	locker := fencegocron.NewLocker(leases, lease.TTL(time.Second))
	ended := make(chan error)
	once := gocron.OneTimeJob(gocron.OneTimeJobStartImmediately())
	scheduler, err := schedule(locker, once, func(ctx context.Context) error {
		w.Pause()
		err := zombie.Write(ctx, db, "A")
		if w.Fenced && !errors.Is(context.Cause(ctx), sqlfence.ErrStale) {
			err = errors.Join(err, errors.New("the context of the run has not ended"))
		}
		ended <- err
		return err
	})
	if err != nil {
		return err
	}
	w.Say(zombie.Outcome(<-ended))
	w.Wait()
	return scheduler.Shutdown()
}

// schedule starts a scheduler that runs the job report.
func schedule(locker *fencegocron.Locker, when gocron.JobDefinition, run func(ctx context.Context) error,
	opts ...gocron.JobOption,
) (gocron.Scheduler, error) {
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		return nil, err
	}
	opts = append(opts, gocron.WithName("report"))
	if _, err := scheduler.NewJob(when, locker.Task("report", run), opts...); err != nil {
		return nil, err
	}
	scheduler.Start()
	return scheduler, nil
}
