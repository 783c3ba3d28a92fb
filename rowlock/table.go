package rowlock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rewrite"
)

// A Table keeps the locks of one table's rows. It is safe for use by several
// goroutines at once, holds no resources, and needs no closing.
type Table struct {
	db      *sql.DB
	tx      *sql.Tx // nil: each method runs by itself
	manager *Manager

	dialect       sqlfence.Dialect
	name          string // as the database knows it, for people
	schema, table string
	quoted        string
	keys          []string // quoted
	keyNames      []string
	columns       columns
	ttl           time.Duration
	nobody        any
}

// New returns a Table for the table called name, "invoice" or "sales.invoice", an
// SQL identifier as for [sqlfence.WithTable]. db may be fenced by sqlfence or not,
// and stays the caller's to close. It sends nothing to the database; see
// [Table.Check].
//
// By default the key is the column id, the version serial, the lock's columns are
// editedby, editedsince and editedexpiry, nobody is written as NULL, a lock lasts
// 10 minutes, there is no [Manager], and the dialect is found from the driver.
func New(db *sql.DB, name string, opts ...Option) (*Table, error) {
	if db == nil {
		return nil, errors.New("rowlock: nil database")
	}
	c := configure(opts)
	t, err := newTable(db, name, c)
	if err != nil {
		c.fail(err)
	}
	if err := errors.Join(c.errs...); err != nil {
		return nil, fmt.Errorf("rowlock: table %q: %w", name, err)
	}
	if c.manager != nil {
		if err := c.manager.add(t); err != nil {
			return nil, fmt.Errorf("rowlock: table %q: %w", name, err)
		}
	}
	return t, nil
}

func newTable(db *sql.DB, name string, c *config) (*Table, error) {
	d, err := settle(db.Driver(), c.dialect)
	if err != nil {
		return nil, err
	}
	schema, table, err := rewrite.ParseName(d, name)
	if err != nil {
		return nil, err
	}
	t := &Table{
		db: db, manager: c.manager, dialect: d, ttl: c.ttl, nobody: c.nobody,
		name: table, schema: schema, table: table, quoted: quote(d, table),
		keys: make([]string, len(c.key)), keyNames: make([]string, len(c.key)),
	}
	if schema != "" {
		t.name, t.quoted = schema+"."+table, quote(d, schema)+"."+t.quoted
	}
	t.columns.dialect = d
	seen := make(map[string]bool)
	read := func(to *string, name string) {
		folded, err := rewrite.ParseColumn(d, name)
		switch {
		case err != nil:
			c.fail(err)
		case seen[folded]:
			c.fail(fmt.Errorf("two columns of the name %q", folded))
		}
		seen[folded], *to = true, folded
	}
	for i, name := range c.key {
		read(&t.keyNames[i], name)
		t.keys[i] = quote(d, t.keyNames[i])
	}
	for to, name := range map[*string]string{
		&t.columns.serial: c.serial, &t.columns.by: c.by, &t.columns.since: c.since, &t.columns.expiry: c.expiry,
	} {
		read(to, name)
		*to = quote(d, *to)
	}
	return t, nil
}

// In returns a Table whose methods take part in tx, a transaction of the same
// database: what they do is seen by others, and lasts, once tx has committed. A
// method that fails on a statement may leave a PostgreSQL transaction to be
// rolled back; a refusal ([sqlfence.ErrGone], [sqlfence.ErrConflict],
// [sqlfence.ErrLocked], [ErrNotHeld]) leaves it usable. At REPEATABLE READ and
// SERIALIZABLE a method may meet a serialization failure, which is returned as it
// is: see [sqlfence.Retry].
func (t *Table) In(tx *sql.Tx) *Table {
	in := *t
	in.tx = tx
	return &in
}

// where finds the row.
func (t *Table) where(key []any) frag {
	w := frag{"WHERE "}
	for i, column := range t.keys {
		if i > 0 {
			w = append(w, " AND ")
		}
		w = append(w, column, " = ", arg{key[i]})
	}
	return w
}

// A querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// run runs fn in the caller's transaction if there is one; in one of its own if
// several statements belong together, else without. The statements touch the
// lock's columns only, so they need no token and count as no change of the row.
func (t *Table) run(ctx context.Context, do string, fn func(context.Context, querier) error) error {
	return t.explain(do, t.send(sqlfence.Bypass(ctx, "rowlock: "+do), fn))
}

// explain adds to a failure what failed; a refusal says it itself.
func (t *Table) explain(do string, err error) error {
	if err == nil || isRefusal(err) {
		return err
	}
	return fmt.Errorf("rowlock: %s: table %q: %w", do, t.name, err)
}

func (t *Table) send(ctx context.Context, fn func(context.Context, querier) error) error {
	switch {
	case t.tx != nil:
		return fn(ctx, t.tx)
	case t.manager != nil:
		return transact(ctx, t.db, t.dialect, fn)
	}
	return resend(func() error { return fn(ctx, t.db) })
}

// transact runs fn in a transaction of its own, which a refusal doesn't repeat. READ COMMITTED is enough, since
// each statement decides on the newest version of the row, which it has locked;
// SQLite has one level only.
func transact(ctx context.Context, db *sql.DB, d sqlfence.Dialect, fn func(context.Context, querier) error) error {
	var opts sqlfence.RetryOptions
	if d == sqlfence.Postgres {
		opts.Tx = &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	var refusal error
	err := sqlfence.Retry(ctx, db, opts, func(ctx context.Context, tx *sql.Tx) error {
		refusal = nil
		err := fn(ctx, tx)
		if isRefusal(err) {
			refusal, err = err, nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return refusal
}

// resend sends a statement again that met a serialization failure, which it does
// where the default level is higher: it has changed nothing, and someone else got
// on. Once the context ends the error is another.
func resend(send func() error) error {
	for {
		err := send()
		var coded interface{ SQLState() string }
		if !errors.As(err, &coded) || coded.SQLState() != "40001" {
			return err
		}
	}
}
