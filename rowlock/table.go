package rowlock

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/cleanup"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Table keeps the locks of one table's rows. It is safe for concurrent use, and needs no closing.
type Table struct {
	db      *sql.DB
	cleanup *cleanup.Queue // of what outlives its caller
	tx      *sql.Tx        // nil: the methods use db
	manager *Manager

	options       dialectopt.Options
	dialect       *dialect
	name          string // folded, with its schema if it was given with one
	schema, table string
	quoted        string
	keys          []string // quoted
	keyNames      []string
	columns       columns
	pieces        sqltext.Pieces
	ttl           time.Duration
	noHolder      any
}

// New returns a Table for the table called name, an SQL identifier such as "invoice" or "sales.invoice". It sends
// nothing, and the caller closes db. By default there is no Manager. The error is [sqlfence.ErrInvalid] and lists all
// invalid options.
func New(db *sql.DB, name string, opts ...Option) (*Table, error) {
	if db == nil {
		return nil, invalid("nil database")
	}
	c := configure(opts)
	t := newTable(db, name, c)
	if err := c.invalid(fmt.Sprintf("table %q", name)); err != nil {
		return nil, err
	}
	if c.manager != nil {
		if err := c.manager.add(t); err != nil {
			return nil, invalid("table %q: %w", name, err)
		}
	}
	return t, nil
}

// newTable returns nil without a dialect to read the names by. Faults are added to c.
func newTable(db *sql.DB, name string, c *config) *Table {
	dialect, named := dialects.Find(&c.Options, db.Driver())
	if dialect == nil {
		return nil
	}
	d := dialect()
	schema, table, err := lang.ParseName(named, name)
	if err != nil {
		c.Fail(err)
	}
	t := &Table{
		db: db, cleanup: cleanup.New(db), manager: c.manager, options: c.Options, dialect: d, ttl: c.ttl,
		noHolder: c.noHolder,
		name:     table, keys: make([]string, len(c.key)), keyNames: make([]string, len(c.key)),
	}
	if schema != "" {
		t.name = schema + "." + table
	}
	t.schema, t.table, _ = lang.SpellName(named, name)
	if t.quoted = d.Quote(t.table); schema != "" {
		t.quoted = d.Quote(t.schema) + "." + t.quoted
	}
	t.readColumns(named, c)
	t.pieces = t.newPieces()
	return t
}

func (t *Table) readColumns(named sqlfence.Dialect, c *config) {
	seen := make(map[string]bool)
	read := func(option, name string) (folded string) {
		folded, err := lang.ParseColumn(named, name)
		switch {
		case err != nil:
			c.Fail(fmt.Errorf("%s: %w", option, err))
		case seen[folded]:
			c.Fail(fmt.Errorf("%s: two columns of the name %q", option, folded))
		}
		seen[folded] = true
		return folded
	}
	for i, name := range c.key {
		t.keyNames[i] = read("WithKey", name)
		t.keys[i] = t.dialect.Quote(t.keyNames[i])
	}
	quoted := func(option, name string) string { return t.dialect.Quote(read(option, name)) }
	t.columns = columns{
		serial: quoted("WithSerial", c.serial),
		by:     quoted("WithColumns", c.by),
		since:  quoted("WithColumns", c.since),
		expiry: quoted("WithColumns", c.expiry),
	}
}

// In returns a Table with methods that take part in tx, a transaction of the same database. After a refusal (ErrGone,
// ErrConflict and ErrLocked of package sqlfence, [ErrNotHeld]) tx can continue; after another error roll it back. At
// REPEATABLE READ and SERIALIZABLE a method may return a serialization failure; see [sqlfence.Retry].
func (t *Table) In(tx *sql.Tx) *Table {
	in := *t
	in.tx = tx
	return &in
}
