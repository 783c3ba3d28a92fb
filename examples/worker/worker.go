//go:build unix

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/examples/internal/mysql"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/verify"
)

const (
	workerEnv = "SQLFENCE_EXAMPLE_WORKER" // name, driver, "true" if fenced, DSN

	ttl  = 2 * time.Second        // short, for a short story
	work = 400 * time.Millisecond // that a job takes
)

func isWorker() bool { return os.Getenv(workerEnv) != "" }

// workerMain is the program of a worker's process.
func workerMain() {
	env := strings.SplitN(os.Getenv(workerEnv), " ", 4)
	if err := workOff(context.Background(), env[0], env[1], env[3], env[2] == "true"); err != nil {
		fmt.Print(fails, err, "\n")
		os.Exit(1)
	}
}

// workOff leads until no job is left, each time that the lease can be had.
func workOff(ctx context.Context, name, driver, dsn string, fenced bool) error {
	open := func() (*sql.DB, error) { return sql.Open(driver, dsn) }
	if fenced {
		open = func() (*sql.DB, error) {
			return sqlfence.Open(driver, dsn, sqlfence.WithTable("jobs"), verify.OnConnect())
		}
	}
	db, err := open()
	if err != nil {
		return err
	}
	defer db.Close()
	leases, err := lease.New(db, lease.WithDefaults(
		lease.Holder(name), lease.TTL(ttl), lease.Timeout(limit), lease.Interval(50*time.Millisecond)))
	if err != nil {
		return err
	}
	finish := "UPDATE jobs SET finished = finished + 1, worker = $1 WHERE id = $2"
	if driver == mysql.Driver {
		finish = "UPDATE jobs SET finished = finished + 1, worker = ? WHERE id = ?"
	}
	for {
		err := leases.Do(ctx, "jobs", func(ctx context.Context) error { return lead(ctx, db, name, finish) })
		if !errors.Is(err, lease.ErrLeaseLost) {
			return err
		}
		fmt.Println(loses + ", and asks for it again")
	}
}

// lead finishes the jobs one by one, as the holder of the lease.
func lead(ctx context.Context, db *sql.DB, name, finish string) error {
	token, _ := sqlfence.FenceFrom(ctx, "jobs")
	fmt.Println("leads with token", token.Value)
	for ctx.Err() == nil {
		var job int64
		err := db.QueryRowContext(ctx, "SELECT id FROM jobs WHERE finished = 0 ORDER BY id LIMIT 1").Scan(&job)
		if errors.Is(err, sql.ErrNoRows) {
			fmt.Println("finds no job left")
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Print(begins, job, "\n")
		time.Sleep(work)

		// A worker that wakes up here can't know yet that the lease is lost. The context would stop most writes, but
		// not a request that is already under way; only the fence stops every write. So this write ignores the context.
		_, err = db.ExecContext(context.WithoutCancel(ctx), finish, name, job)
		var stale *sqlfence.StaleError
		if errors.As(err, &stale) {
			fmt.Printf("wants to finish job %d: refused, token %d is stale, the newest is %d\n", job, stale.Token.Value, stale.Current)
		}
		if err != nil {
			return err
		}
		fmt.Print(finishes, job, "\n")
	}
	return context.Cause(ctx)
}
