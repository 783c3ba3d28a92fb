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

// A Counter reads the counts of a database's tables. It is safe for concurrent use, holds no resources, and needs no
// closing. The zero Counter can't be used; see [New].
type Counter struct {
	db      *sql.DB
	dialect *dialect
	schema  string // the schema of sqlfence's tables; empty if the session finds the tables without a schema
}

// An Option configures a [Counter].
type Option func(*config)

// WithDialect names the dialect of a driver that sqlfence doesn't know. A dialect that contradicts a known driver is
// [sqlfence.ErrInvalid].
func WithDialect(d sqlfence.Dialect) Option {
	return func(c *config) { c.NameDialect(d) }
}

type config struct{ dialectopt.Options }

// New returns a Counter on db, which may be fenced by sqlfence or not. New sends nothing to the database, and the
// caller closes db. A nil db, invalid options, and an unknown driver without [WithDialect] are [sqlfence.ErrInvalid].
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

// Count returns the sum of the tables' change counts, by one query on one snapshot. If a transaction that has changed
// one of the tables commits between two calls, the second result is higher. If the results are equal, no such
// transaction has committed. tables are names as for [sqlfence.WithTable].
//
// Call Count before you read the data to be cached, and on the same server, because a standby may lag behind. If a
// failover or a restore loses changes, the count falls, and can later reach an old value again: drop the cached data
// then.
//
// Count needs the privilege SELECT on fencing_changes, and on MySQL the privilege TRIGGER on the tables, to see their
// triggers.
//
// Errors: [sqlfence.ErrInvalid] for an invalid name, and if there is no table; a [*sqlfence.SetupError] (which is
// [sqlfence.ErrNotSetUp]) for a table without the triggers, for example because the table was renamed or recreated, and
// for a table that Setup would now refuse; or the database's error.
func (c *Counter) Count(ctx context.Context, tables ...string) (int64, error) {
	named, err := c.named(tables)
	if err != nil {
		return 0, err
	}
	return c.count(ctx, named)
}

func (c *Counter) count(ctx context.Context, tables []table) (sum int64, err error) {
	ok, counts, err := c.query(ctx, tables)
	if err != nil {
		return 0, fmt.Errorf("changes: count: %w", dialectopt.Ended(ctx, err))
	}
	for i, t := range tables {
		if !ok[i] {
			return 0, &sqlfence.SetupError{
				Missing: "the counter of table " + t.written, Remedy: "call changes.Counter.Setup", Err: errNoTriggers,
			}
		}
		sum += counts[i]
	}
	return sum, nil
}

var errNoTriggers = errors.New("its triggers are missing, or this role can't see them")

// Watch yields the tables' count: first the current count, and then each changed count, until the loop is left or ctx
// ends. Watch queries the database every interval, which must be above 0. A cache that the loop clears is outdated for
// at most an interval and the duration of a query.
//
//	for _, err := range counter.Watch(ctx, time.Second, "books") {
//		clear(cache) // also after an error, because changes are unknown then
//	}
//
// If the tables or the interval are invalid, Watch yields an [sqlfence.ErrInvalid] and ends. After any other error of
// [Counter.Count] the loop continues; the count yielded with an error is 0 and has no meaning.
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

// query returns, for each table, whether it is counted, and its count.
func (c *Counter) query(ctx context.Context, tables []table) (ok []bool, counts []int64, err error) {
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
