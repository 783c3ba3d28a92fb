// Leader lets two candidates, A and B, share one leadership: A is elected, hands over to
// B, and then still writes. None of the writes is given a context with a token.
//
//	go run ./examples/leader                       # SQLite, in a temporary folder
//	go run ./examples/leader -dsn postgres://...   # in a schema of its own, dropped at the end
//
// Both candidates run in one process, so that each run prints the same output. They share only the database, as two
// processes would. examples/worker shows a paused process.
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

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/examples/internal/scratch"
	"github.com/sqlfence/sqlfence/lease"
)

func main() {
	dsn := flag.String("dsn", "", "a PostgreSQL database, as a URL, to use instead of SQLite")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *dsn)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "leader:", err)
		os.Exit(1)
	}
}

// limit is how long the story may take, which takes a second.
const limit = 5 * time.Minute

// run plays the story on a fresh database and writes what happens.
func run(ctx context.Context, w io.Writer, dsn string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	source, err := scratch.New(ctx, "leader", dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Drop()) }()
	if err := create(ctx, source); err != nil {
		return err
	}
	return play(ctx, w, source)
}

func play(ctx context.Context, w io.Writer, source *scratch.Database) (err error) {
	a, err := newCandidate(ctx, "A", source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	request, err := a.wins(ctx, w) // the context of something slow that A begins now
	if err != nil {
		return err
	}
	b, err := newCandidate(ctx, "B", source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	a.setPrice(w, 20)
	b.setPrice(w, 30)

	fmt.Fprintln(w, "A resigns.")
	a.election.Resign()
	if _, err := b.wins(ctx, w); err != nil {
		return err
	}
	fmt.Fprintf(w, "Is A the leader? %v. Is B? %v.\n", a.election.IsLeader(), b.election.IsLeader())
	b.setPrice(w, 40)
	a.setPrice(w, 50)

	// The request began under A's lease, and doesn't check whether the lease has ended.
	fmt.Fprintln(w, "A's slow request, begun under token 1, writes at last.")
	_, err = a.db.ExecContext(context.WithoutCancel(request), "UPDATE books SET price = 60")
	report(w, "A", 60, err)
	if !errors.Is(err, sqlfence.ErrStale) {
		return fmt.Errorf("want it to be stale: %w", err)
	}

	var price int
	if err := b.db.QueryRowContext(ctx, "SELECT price FROM books").Scan(&price); err != nil {
		return err
	}
	fmt.Fprintf(w, "The price is %d.\n", price)
	if price != 40 {
		return errors.New("a late write has landed")
	}
	return nil
}

// report prints the outcome of a write.
func report(w io.Writer, name string, price int, err error) {
	switch {
	case err == nil:
		fmt.Fprintf(w, "%s sets the price to %d.\n", name, price)
	case errors.Is(err, lease.ErrNotLeader):
		fmt.Fprintf(w, "%s sets the price to %d: not sent:\n    %v\n", name, price, err)
	default:
		fmt.Fprintf(w, "%s sets the price to %d: refused by the database:\n    %v\n", name, price, err)
	}
}
