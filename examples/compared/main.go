// Compared lets a former holder write, under several approaches that are meant to prevent such a write, and prints the
// outcomes.
//
//	go run ./examples/compared                       # SQLite, in a temporary folder
//	go run ./examples/compared -dsn postgres://...   # in a schema of its own, dropped at the end
//
// On PostgreSQL the user must be allowed to create schemas and roles, and to end sessions.
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
	"text/tabwriter"
)

func main() {
	dsn := flag.String("dsn", "", "a PostgreSQL database, as a URL, to use instead of SQLite")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *dsn)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compared:", err)
		os.Exit(1)
	}
}

// run tries all approaches on one database and writes the table.
func run(ctx context.Context, w io.Writer, dsn string) (err error) {
	open := openSQLite
	if dsn != "" {
		open = openPostgres
	}
	db, err := open(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.drop()) }()

	fmt.Fprintf(w, "%s. A holds the books and is paused; B takes over and writes; then A writes.\n\n", db.name)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	heads := [2]string{"", "approach"}
	for _, c := range cases {
		heads[0] += "\t" + c.head[0]
		heads[1] += "\t" + c.head[1]
	}
	fmt.Fprintf(table, "%s\tB has\tstatements,\n%s\tto wait\t%s\n", heads[0], heads[1], db.cost)
	for _, a := range db.approaches {
		line, err := a.try(ctx, db)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		fmt.Fprintf(table, "%s\t%s\n", a.name, line)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, text := range db.missing {
		fmt.Fprintf(w, "%s\n", text)
	}
	return nil
}
