// Pgx has two workers write through a pool of pgx's, without database/sql: by Exec, by a batch and in a transaction.
// The second worker takes a newer token, and the first worker's later writes are refused.
//
//	go run ./examples/pgx -dsn postgres://...   # a schema of its own, dropped at the end
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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/examples/internal/scratch"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/tokens"
)

func main() {
	dsn := flag.String("dsn", "", "a database of PostgreSQL, as a URL")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *dsn)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgx:", err)
		os.Exit(1)
	}
}

// limit is how long the story may take, which takes less than a second.
const limit = 5 * time.Minute

// run plays the story on a fresh schema and writes what happens.
func run(ctx context.Context, w io.Writer, dsn string) (err error) {
	if dsn == "" {
		return errors.New("name a database of PostgreSQL by -dsn")
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	source, err := scratch.New(ctx, "pgx", dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Drop()) }()
	pool, err := pgxpool.New(ctx, source.DSN)
	if err != nil {
		return err
	}
	db, err := fencepgx.New(pool, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
	if err != nil {
		pool.Close()
		return err
	}
	defer db.Close()
	return play(ctx, w, db)
}

func play(ctx context.Context, w io.Writer, db *fencepgx.DB) error {
	issued, err := tokens.New(db.SQL()) // of the same pool
	if err != nil {
		return err
	}
	if err := issued.Setup(ctx); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, "CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token bigint)"); err != nil {
		return err
	}
	var workers [2]context.Context
	for i, name := range []string{"A", "B"} {
		token, err := issued.Issue(ctx, "books")
		if err != nil {
			return err
		}
		workers[i] = sqlfence.WithFence(ctx, token)
		fmt.Fprintf(w, "%s has %v.\n", name, token)
		fmt.Fprintln(w, name, "adds three books in a batch ...", outcome(add(workers[i], db, 3*i)))
	}
	fmt.Fprintln(w, "A sets a price ...", outcome(setPrice(workers[0], db, 10)))
	fmt.Fprintln(w, "A adds three more ...", outcome(add(workers[0], db, 6)))
	fmt.Fprintln(w, "A raises prices in a transaction ...", outcome(raise(workers[0], db)))
	fmt.Fprintln(w, "B raises prices in a transaction ...", outcome(raise(workers[1], db)))
	rows, err := db.Query(ctx, "SELECT id || ':' || price FROM books ORDER BY id")
	if err != nil {
		return err
	}
	prices, err := pgx.CollectRows(rows, pgx.RowTo[string])
	fmt.Fprintln(w, "The prices are", prices)
	return err
}

func setPrice(ctx context.Context, db *fencepgx.DB, price int) error {
	_, err := db.Exec(ctx, "UPDATE books SET price = @price WHERE id = 1", pgx.NamedArgs{"price": price})
	return err
}

// add adds three books after the first books, in one round trip.
func add(ctx context.Context, db *fencepgx.DB, first int) error {
	var batch pgx.Batch
	for i := range 3 {
		batch.Queue("INSERT INTO books (id, price) VALUES ($1, $2)", first+i+1, 20)
	}
	return db.SendBatch(ctx, &batch).Close()
}

func raise(ctx context.Context, db *fencepgx.DB) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE books SET price = price + 1")
		return err
	})
}

func outcome(err error) string {
	if err != nil {
		return err.Error()
	}
	return "done"
}
