// Queue has two workers take jobs from a table. The first worker is paused, and a rescuer gives its jobs to the second
// worker. Then the first worker wakes up, and tries to complete jobs that belong to the second.
//
//	go run ./examples/queue                       # SQLite, in a temporary folder
//	go run ./examples/queue -dsn postgres://...   # or mysql://...; what it makes there is dropped at the end
//
// Both workers run in one process, so that each run prints equal output. The workers share only the database.
package main

import (
	"context"
	"database/sql"
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
	"github.com/sqlfence/sqlfence/examples/internal/sqlite"
)

func main() {
	dsn := flag.String("dsn", "", "a database of PostgreSQL, MySQL or MariaDB, as a URL, to use instead of SQLite")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *dsn)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "queue:", err)
		os.Exit(1)
	}
}

// limit is how long the story may take, which takes less than a second.
const limit = 5 * time.Minute

// run plays the story on a fresh database and writes what happens.
func run(ctx context.Context, w io.Writer, dsn string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	source, err := scratch.New(ctx, "queue", dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Drop()) }()
	db, err := open(ctx, source)
	if err != nil {
		return err
	}
	defer db.Close()
	return play(ctx, w, &queue{db: db, locking: source.Driver != sqlite.Driver})
}

// open opens the database and creates its tables.
func open(ctx context.Context, source *scratch.Database) (*sql.DB, error) {
	db, err := sqlfence.Open(source.Driver, source.DSN,
		sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")),
		sqlfence.WithTable("results", sqlfence.ClaimOf("jobs"), sqlfence.Key("job")))
	if err != nil {
		return nil, err
	}
	for _, query := range []string{
		"CREATE TABLE jobs (id bigint PRIMARY KEY, state varchar(10) NOT NULL, attempt bigint NOT NULL DEFAULT 0)",
		"CREATE TABLE results (job bigint PRIMARY KEY, worker varchar(10) NOT NULL)",
		"INSERT INTO jobs (id, state) VALUES (1, 'queued'), (2, 'queued'), (3, 'queued')",
	} {
		if _, err := db.ExecContext(ctx, query); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}

func play(ctx context.Context, w io.Writer, q *queue) error {
	ofA, err := q.take(ctx, 2)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "A takes %v, and is paused.\n", ofA)
	if err := q.rescue(ctx); err != nil {
		return err
	}
	ofB, err := q.take(ctx, 3)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "A rescuer gives them back, and B takes %v.\n", ofB)
	a, b := ofA[0], ofB[0]
	fmt.Fprintln(w, "B stores the result of", b, "...", outcome(q.store(ctx, "B", b)))
	fmt.Fprintln(w, "A wakes up.")
	fmt.Fprintln(w, "A stores the result of", ofA[1], "...", outcome(q.store(ctx, "A", ofA[1])))
	fmt.Fprintln(w, "A completes", a, "...", outcome(q.complete(ctx, a)))
	fmt.Fprintln(w, "B completes", b, "...", outcome(q.complete(ctx, b)))
	done, err := q.results(ctx)
	fmt.Fprintln(w, "The results are", done)
	return err
}

func outcome(err error) string {
	if err != nil {
		return err.Error()
	}
	return "done"
}
