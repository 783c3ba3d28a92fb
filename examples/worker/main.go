//go:build unix

// Worker runs two processes that work off one queue, one at a time: the holder of the lease. It stops the leader as
// kill -STOP does, lets the second process take over, wakes the first, and shows that the first process's late writes
// are refused.
//
//	go run ./examples/worker                        # SQLite in a temporary folder
//	go run ./examples/worker -dsn postgres://...    # a schema of its own, dropped at the end
//	go run ./examples/worker -unfenced              # the same without the fence
//
// It exits with status 1 if the stale write landed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sqlfence/sqlfence/examples/internal/scratch"
)

var errStaleLanded = errors.New("the stale write landed")

func main() {
	if isWorker() {
		workerMain()
		return
	}
	dsn := flag.String("dsn", "", "a database of PostgreSQL, MySQL or MariaDB, as a URL, to use instead of SQLite")
	unfenced := flag.Bool("unfenced", false, "open the database with the bare driver")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *dsn, !*unfenced); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		stop()
		os.Exit(1)
	}
}

// limit is how long the story may take, which takes some seconds.
const limit = 5 * time.Minute

// run plays the story on a fresh database and writes the timeline.
func run(ctx context.Context, w io.Writer, dsn string, fenced bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	src, err := scratch.New(ctx, "worker", dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Drop()) }()
	queue, err := create(ctx, src)
	if err != nil {
		return err
	}
	defer queue.Close()

	fmt.Fprintf(w, "Two workers, A and B, work off a queue of %d jobs, one worker at a time.\n"+
		"A is stopped in the middle of job %d, and B takes over. It takes about %v.\n\n", jobs, stopAt, jobs*work+ttl)
	if err := play(ctx, newStory(w), src, fenced); err != nil {
		return err
	}
	landed, err := staleWrites(ctx, queue)
	if err != nil {
		return err
	}
	if landed > 0 {
		return fmt.Errorf("%w: job %d was finished by B, and then once more by A", errStaleLanded, stopAt)
	}
	fmt.Fprintln(w, "\nOK: every job was finished once.")
	return nil
}

// stopAt is the job that the leader is stopped in the middle of.
const stopAt = 2

// play stops the leader A in the middle of a job, until B has finished that job.
func play(ctx context.Context, st *story, src *scratch.Database, fenced bool) error {
	a, err := startWorker(ctx, st, "A", src, fenced)
	if err != nil {
		return err
	}
	defer a.kill()
	if err := st.wait(ctx, "A", "leads with token 1"); err != nil {
		return err
	}
	b, err := startWorker(ctx, st, "B", src, fenced)
	if err != nil {
		return err
	}
	defer b.kill()
	if err := st.wait(ctx, "A", fmt.Sprint(begins, stopAt)); err != nil {
		return err
	}
	if err := a.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	st.add("A", stopped)
	if err := st.wait(ctx, "B", fmt.Sprint(finishes, stopAt)); err != nil {
		return err
	}
	st.add("A", resumed)
	if err := a.signal(syscall.SIGCONT); err != nil {
		return err
	}
	err = errors.Join(a.wait(), b.wait())
	if st.disturbed() {
		return errDisturbed
	}
	return err
}
