// Demo runs a small book service on a fenced database, with many clients at once, and shows the refused writes; then it
// does the same without sqlfence. examples/books runs Demo.
//
// It exits with status 1 if a stale write landed in spite of the fence.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/sqlfence/sqlfence/examples/internal/mysql"
	"github.com/sqlfence/sqlfence/examples/internal/sqlite"
)

var errStaleLanded = errors.New("stale writes landed")

func main() {
	n := flag.Int("clients", 1000, "how many clients change the price")
	dsn := flag.String("dsn", "", "a PostgreSQL database, or a MySQL or MariaDB one, or an empty keyspace of Vitess, "+
		"as mysql://..., to use instead of SQLite")
	seed := flag.Uint64("seed", 0, "seed of the clients' delays; 0 for another one each time")
	flag.Parse()
	if *n < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}

	if *seed == 0 {
		*seed = 1 + rand.Uint64N(10_000)
	}
	// An interrupted run still removes its database.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := program{
		title:    fmt.Sprintf("SQLite (driver %s)", sqlite.Driver),
		fresh:    func(context.Context) (*source, error) { return newSQLite(sqlite.Driver) },
		guarded:  fenced,
		clients:  newClients(*n, *seed),
		progress: progress(ctx, os.Stdout),
	}
	switch {
	case strings.HasPrefix(*dsn, mysql.Scheme):
		p.title = "MySQL (driver go-sql-driver/mysql)"
		p.fresh = func(ctx context.Context) (*source, error) { return newMySQL(ctx, *dsn) }
	case *dsn != "":
		p.title = "PostgreSQL (driver pgx)"
		p.fresh = func(ctx context.Context) (*source, error) { return newPostgres(ctx, *dsn) }
	}
	fmt.Printf("%d clients change the price of one book, on %s, seed %d.\n\n", *n, p.title, *seed)
	err := p.run(ctx, os.Stdout)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted && err != nil:
		fmt.Fprintln(os.Stderr, "books: interrupted; its database is removed")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "books:", err)
		os.Exit(1)
	}
}

// A program is all that the runs have in common.
type program struct {
	title    string
	fresh    func(context.Context) (*source, error)
	guarded  opener // fenced, unless a test wants to see the program fail
	clients  []client
	progress func(total int, what string) (step func())
}

// run runs everything and writes the report. The error describes the guarantee that the fence failed to keep.
func (p *program) run(ctx context.Context, w io.Writer) error {
	with, err := p.stress(ctx, p.guarded, "with sqlfence")
	if err != nil {
		return err
	}
	without, err := p.stress(ctx, bare, "bare driver")
	if err != nil {
		return err
	}
	compare(w, with, without)

	story, landed, err := p.holder(ctx, p.guarded)
	if err != nil {
		return err
	}
	unfenced, _, err := p.holder(ctx, bare)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "\nA is paused, B takes over, A wakes up. With sqlfence:")
	story.print(w)
	fmt.Fprintf(w, "The same on the bare driver ends with the price %d.\n", unfenced.last().price)

	if landed {
		err = fmt.Errorf("%w: the paused holder's", errStaleLanded)
	}
	if err := errors.Join(with.check(), err); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nOK: with sqlfence no stale write landed, and the final price is that of the highest token.")
	return nil
}

func (p *program) stress(ctx context.Context, open opener, what string) (r *result, err error) {
	step := p.progress(len(p.clients), what)
	err = withService(ctx, p.fresh, open, func(s *service) error {
		r, err = stress(ctx, s, p.clients, step)
		return err
	})
	return r, err
}

func (p *program) holder(ctx context.Context, open opener) (st *story, staleLanded bool, err error) {
	err = withService(ctx, p.fresh, open, func(s *service) error {
		st, staleLanded = pausedHolder(ctx, s)
		return st.err
	})
	return st, staleLanded, err
}

// compare writes the results side by side.
func compare(w io.Writer, with, without *result) {
	line := func(label string, a, b any) { fmt.Fprintf(w, "  %-36s%15v%14v\n", label, a, b) }
	row := func(label string, of func(*result) any) { line(label, of(with), of(without)) }

	line("", "with sqlfence", "bare driver")
	row("writes accepted", func(r *result) any { return len(r.accepted) })
	row("writes refused (ErrStale)", func(r *result) any { return r.refused })
	row("errors", func(r *result) any { return len(r.errs) })
	row("lower token overwrote a higher one", func(r *result) any { return r.stale() })
	row("price of the highest accepted token", func(r *result) any { return r.newest().price })
	row("final price", func(r *result) any { return r.final.price })
	row("the newest holder's price stayed", func(r *result) any {
		if r.final.price == r.newest().price {
			return "yes"
		}
		return "NO"
	})
}
