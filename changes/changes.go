package changes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/poll"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// A Counter reads the counts of a database's tables. It is safe for use by several goroutines at once, holds no
// resources, and needs no closing. The zero Counter can't be used; see [New].
type Counter struct {
	db      *sql.DB
	dialect *dialect
	schema  string // the schema of sqlfence's tables; empty if the session finds the tables without a schema
}

// An Option configures a [Counter].
type Option func(*config)

// WithDialect names the dialect. Only drivers that sqlfence doesn't know need it. A dialect that contradicts a known
// driver is invalid.
func WithDialect(d sqlfence.Dialect) Option {
	return func(c *config) { c.NameDialect(d) }
}

type config struct{ dialectopt.Options }

// New returns a Counter on db, which may be fenced by sqlfence or not; the caller closes it. New sends nothing to
// the database. A nil db, a driver that sqlfence doesn't know and invalid options are [sqlfence.ErrInvalid].
func New(db *sql.DB, opts ...Option) (*Counter, error) {
	c := new(config)
	dialectopt.Apply(c, opts)
	var d *dialect
	if db == nil {
		c.Fail(errors.New("nil database"))
	} else {
		d, _ = dialects.Find(&c.Options, db.Driver())
	}
	if err := c.Err("changes"); err != nil {
		return nil, err
	}
	return &Counter{db: db, dialect: d, schema: c.Schema}, nil
}

// Count returns the sum of the tables' change counts, from one query on one snapshot. If a transaction that has changed
// one of the tables commits between two calls, the second count is higher. If the counts are equal, no such transaction
// has committed. tables are names as for [sqlfence.WithTable].
//
// Call Count before reading the data to be cached, and on the same server, because a standby may lag behind. After a
// failover or a restore that has lost changes, the count is lower, and later reaches the old value again: drop the
// cached data then.
//
// Count needs the privilege SELECT on fencing_changes, and in MySQL the privilege TRIGGER on the tables to see their
// triggers.
//
// Errors: [sqlfence.ErrInvalid] for no table and for an invalid name; [*sqlfence.SetupError] (which is
// [sqlfence.ErrNotSetUp]) for a table without the triggers, for example after the table was renamed or recreated, and
// for a table that Setup would now refuse; or the database's error.
func (c *Counter) Count(ctx context.Context, tables ...string) (int64, error) {
	named, err := c.named(tables)
	if err != nil {
		return 0, err
	}
	return c.count(ctx, named)
}

func (c *Counter) count(ctx context.Context, tables []table) (sum int64, err error) {
	ok, counts, err := c.ask(ctx, tables)
	if err != nil {
		return 0, fmt.Errorf("changes: count: %w", dialectopt.Ended(ctx, err))
	}
	for i, t := range tables {
		if !ok[i] {
			return 0, &sqlfence.SetupError{
				Missing: "the counter of table " + t.given, Remedy: "call changes.Counter.Setup", Err: errNoTriggers,
			}
		}
		sum += counts[i]
	}
	return sum, nil
}

var errNoTriggers = errors.New("its triggers are missing, or this role can't see them")

// Watch yields the count of the tables: first the current count, and then each changed count, until the loop is left or
// ctx ends. Watch queries the database every interval, which must be above 0. A cache that Watch invalidates is
// outdated for at most an interval and the duration of a query.
//
//	for _, err := range counter.Watch(ctx, time.Second, "books") {
//		clear(cache) // on an error, too: nothing is known then
//	}
//
// An [sqlfence.ErrInvalid] for the tables or the interval ends the loop. Each failure of [Counter.Count] is yielded
// with a meaningless count of 0.
func (c *Counter) Watch(ctx context.Context, interval time.Duration, tables ...string) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		named, err := c.named(tables)
		if err == nil && interval <= 0 {
			err = fmt.Errorf("%w: changes: an interval of %v, want more than 0", sqlfence.ErrInvalid, interval)
		}
		if err != nil {
			yield(0, err)
			return
		}
		ask := func(ctx context.Context) (int64, error) { return c.count(ctx, named) }
		poll.Changes(ctx, interval, ask, func(a, b int64) bool { return a == b })(yield)
	}
}

// ask returns, for each table, whether it is counted, and its count.
func (c *Counter) ask(ctx context.Context, tables []table) (ok []bool, counts []int64, err error) {
	var parts []string
	for i, t := range tables {
		parts = append(parts, fmt.Sprintf("SELECT %d AS i, ", i)+c.dialect.text(c, t, c.dialect.count))
	}
	query := sqltext.Whole(c.dialect, strings.Join(parts, "\nUNION ALL ")+"\nORDER BY i")
	scan := func(rows *sql.Rows) error {
		var i int
		var there bool
		var n sql.NullInt64
		err := rows.Scan(&i, &there, &n)
		ok, counts = append(ok, there && n.Valid), append(counts, n.Int64)
		return err
	}
	if c.dialect.reads == nil {
		err = dialectopt.EachRow(ctx, c.db, scan, query)
		return ok, counts, err
	}
	err = c.inTx(ctx, func(tx *sql.Tx) error { return dialectopt.EachRow(ctx, tx, scan, query) })
	return ok, counts, err
}

// inTx calls do in a new transaction, even if a session without autocommit has left a transaction open.
func (c *Counter) inTx(ctx context.Context, do func(tx *sql.Tx) error) error {
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(trusted.Context(ctx, c.dialect.end), c.dialect.end); err != nil {
		return err
	}
	tx, err := conn.BeginTx(ctx, c.dialect.reads)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}
