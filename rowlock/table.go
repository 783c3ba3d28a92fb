package rowlock

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/cleanup"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Table keeps the locks of one table's rows. It is safe for concurrent use.
type Table struct {
	db      *sql.DB
	cleanup *cleanup.Queue // work that continues after its caller has gone
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
	fragments     sqltext.Fragments
	ttl           time.Duration
	noHolder      any
}

// New returns a Table for the table called name, an SQL identifier such as "invoice" or "sales.invoice". New sends
// nothing to the database, and the caller closes db. The error is [sqlfence.ErrInvalid] and lists all invalid options.
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
	t.quoted = sqltext.QuoteIn(d, t.schema, t.table)
	t.readColumns(named, c)
	t.fragments = t.newFragments()
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

// In returns a Table with methods that run in tx, a transaction of the same database. After a refusal (ErrGone,
// ErrConflict and ErrLocked of package sqlfence, [ErrNotHeld]) tx can continue; after another error roll it back.
func (t *Table) In(tx *sql.Tx) *Table {
	in := *t
	in.tx = tx
	return &in
}

// An Option configures a [Table]. Column names are SQL identifiers, folded as the database folds them unless they are
// in double quotes.
type Option func(*config)

// WithKey sets the columns of the row's key, which must be unique and never NULL. The default is id.
func WithKey(names ...string) Option {
	return forTable("WithKey", func(c *config) {
		if len(names) == 0 {
			c.Fail(errors.New("WithKey without a column"))
		}
		c.key = names
	})
}

// WithSerial sets the version column, an integer that is never NULL. The default is serial.
func WithSerial(name string) Option {
	return forTable("WithSerial", func(c *config) { c.serial = name })
}

// WithColumns sets the lock's columns. The defaults are editedby, editedsince and editedexpiry. A [sqlfence.EditLock]
// on the table must name the same columns.
func WithColumns(by, since, expiry string) Option {
	return forTable("WithColumns", func(c *config) { c.by, c.since, c.expiry = by, since, expiry })
}

// WithTTL sets how long a lock lasts if the Edit has no TTL: at least 1 ms, default 10 minutes.
func WithTTL(ttl time.Duration) Option {
	return forTable("WithTTL", func(c *config) {
		if ttl < time.Millisecond {
			c.Fail(fmt.Errorf("WithTTL: the TTL %v is less than 1ms", ttl))
		}
		c.ttl = ttl
	})
}

// WithNobody sets the value that the column editedby gets if no user holds the lock: nil (NULL, the default), 0 or "".
// A column that is NOT NULL needs 0 or "". When the column is read, all three values mean no holder, and so does a text
// that spells zero.
func WithNobody(value any) Option {
	return forTable("WithNobody", func(c *config) {
		plain, err := driver.DefaultParameterConverter.ConvertValue(value)
		if err != nil || plain != nil && plain != int64(0) && plain != "" {
			c.Fail(fmt.Errorf("WithNobody(%v): want nil, 0 or an empty text", value))
		}
		c.noHolder = plain
	})
}

// WithManager lets m list and free the table's locks. m must have the same [*sql.DB] as the Table.
func WithManager(m *Manager) Option {
	return forTable("WithManager", func(c *config) {
		if m == nil {
			c.Fail(errors.New("WithManager: the Manager is nil"))
		}
		c.manager = m
	})
}

// WithDialect sets the dialect of a driver that sqlfence doesn't know.
func WithDialect(d sqlfence.Dialect) Option {
	return func(c *config) { c.NameDialect(d) }
}

type config struct {
	dialectopt.Options
	key               []string
	serial            string
	by, since, expiry string
	ttl               time.Duration
	noHolder          any
	manager           *Manager
	tableOnly         []string // the options given that mean nothing for a Manager
}

// forTable returns an option that only configures a Table.
func forTable(name string, set Option) Option {
	return func(c *config) {
		set(c)
		c.tableOnly = append(c.tableOnly, name)
	}
}

func configure(opts []Option) *config {
	c := &config{
		key: []string{"id"}, serial: "serial",
		by: "editedby", since: "editedsince", expiry: "editedexpiry",
		ttl: 10 * time.Minute,
	}
	dialectopt.Apply(c, opts)
	return c
}

// invalid returns all faults of the options of the Table or Manager called name.
func (c *config) invalid(name string) error {
	if err := c.Err(name); err != nil {
		return dialectopt.Invalid("rowlock", err)
	}
	return nil
}
