package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/examples/internal/scratch"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/verify"
)

// ttl is long, so that no leader loses the lease because the machine pauses. In this example leaders hand over. If a
// leader can die, the other candidates wait for the ttl.
const ttl = limit

// A candidate leads while it has the lease of the books.
type candidate struct {
	name     string
	election *lease.Election
	db       *sql.DB

	elected chan context.Context
	stop    context.CancelFunc
	ended   chan error // of the election
}

// newCandidate returns a candidate that campaigns, until ctx ends or it is closed.
func newCandidate(ctx context.Context, name string, source *scratch.Database) (c *candidate, err error) {
	c = &candidate{name: name, elected: make(chan context.Context, 1), ended: make(chan error, 1)}
	c.election, err = lease.NewElection("books", lease.Callbacks{Elected: c.lead},
		lease.Holder(name), lease.TTL(ttl), lease.Interval(20*time.Millisecond))
	if err != nil {
		return nil, err
	}
	c.db, err = sqlfence.Open(source.Driver, source.DSN,
		sqlfence.WithTable("books"), sqlfence.WithTokenSource(c.election.Tokens), verify.OnConnect())
	if err != nil {
		return nil, err
	}
	leases, err := lease.New(c.db)
	if err != nil {
		return nil, errors.Join(err, c.db.Close())
	}
	ctx, c.stop = context.WithCancel(ctx)
	go func() {
		c.ended <- c.election.Run(ctx, leases)
		close(c.ended)
	}()
	return c, nil
}

// lead is the leader's work. In this example lead only waits, and main makes the writes.
func (c *candidate) lead(ctx context.Context) {
	c.elected <- ctx
	<-ctx.Done() // it must not outlive its leadership
}

// wins waits until c leads, and returns the context of its leadership.
func (c *candidate) wins(ctx context.Context, w io.Writer) (context.Context, error) {
	select {
	case leading := <-c.elected:
		token, _ := sqlfence.FenceFrom(leading, "books")
		fmt.Fprintf(w, "%s is elected, with token %d.\n", c.name, token.Value)
		return leading, nil
	case err := <-c.ended:
		return nil, fmt.Errorf("%s wasn't elected: %w", c.name, err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// setPrice has no context, like code from before package context.
func (c *candidate) setPrice(w io.Writer, price int) {
	_, err := c.db.Exec("UPDATE books SET price = $1", price)
	report(w, c.name, price, err)
}

// close ends the campaign or the leadership, and closes the database.
func (c *candidate) close() error {
	c.stop()
	return errors.Join(<-c.ended, c.db.Close())
}

// create makes the tables. It goes past the fence by an option, as a migration would.
func create(ctx context.Context, source *scratch.Database) (err error) {
	db, err := sqlfence.Open(source.Driver, source.DSN, sqlfence.WithTable("books"), sqlfence.WithoutGuards("create the books"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	leases, err := lease.New(db)
	if err != nil {
		return err
	}
	if err := leases.Setup(ctx); err != nil {
		return err
	}
	for _, text := range []string{"CREATE TABLE books (id bigint PRIMARY KEY, price bigint)", "INSERT INTO books VALUES (1, 10)"} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}
