package rowlock

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
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
	d, err := dialectopt.Resolve(db.Driver(), c.dialect)
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
