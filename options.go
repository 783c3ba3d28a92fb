package sqlfence

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/sqlfence/sqlfence/rewrite"
)

// A Dialect is the SQL that a database speaks.
type Dialect = rewrite.Dialect

// The dialects. MySQL is known by name but not guarded yet: opening a database
// with it and a registered table is an error.
const (
	Postgres = rewrite.Postgres
	SQLite   = rewrite.SQLite
	MySQL    = rewrite.MySQL
)

// A Mode says what happens to a write that the fence finds fault with.
type Mode uint8

const (
	// Enforce refuses it. The default.
	Enforce Mode = iota
	// Observe lets it through and reports it to the observer as WouldRefuse. So it
	// does with a write whose guard fails for another reason, such as a column
	// that is missing; the event has the database's error then. Marks still rise to
	// the tokens of the writes, and fall only by what is sent as it was written: a
	// statement that can't be guarded, such as SQLite's REPLACE, or whose guard
	// fails. A write that would have been refused costs a second statement, and in
	// a PostgreSQL transaction every guarded write a savepoint.
	Observe
)

// An Option configures a fenced database. Options are checked together when the
// database is opened; what contradicts is refused there.
type Option func(*config)

// WithTable registers a table: name is an SQL identifier, "books" or
// "shop.books", folded as the database folds it unless it is written in double
// quotes. Without rules the table is guarded by the [Ledger]. "books" stands for
// books in any schema; "shop.books" for that one, and for an unqualified books,
// which may resolve to it. The tables of sqlfence's own packages (fencing_tokens,
// fencing_leases, rowlocks) are guarded by themselves, and refused here. In
// PostgreSQL a name with capital letters outside of ASCII has to be in double quotes:
// what they are folded to depends on the database's encoding.
//
// In PostgreSQL the rows of a table can be written by the name of a partition, a
// parent or a child, which have to be registered then. With one [Resource] they
// take the same tokens:
//
//	sqlfence.WithTable("books", sqlfence.RowFence("fence_token")),
//	sqlfence.WithTable("books_2026", sqlfence.RowFence("fence_token"), sqlfence.Resource("books")),
func WithTable(name string, rules ...Rule) Option {
	return func(c *config) { c.tables = append(c.tables, newTable(name, rules)) }
}

// WithDialect names the dialect. It is needed only for drivers that sqlfence
// doesn't know; one that contradicts a known driver is refused.
func WithDialect(d Dialect) Option {
	return func(c *config) {
		if d != Postgres && d != SQLite && d != MySQL {
			c.fail(fmt.Errorf("unknown dialect %d", d))
		} else if c.dialect != 0 && c.dialect != d {
			c.fail(fmt.Errorf("two dialects, %v and %v", c.dialect, d))
		}
		c.dialect = d
	}
}

// WithMode sets the mode; the default is [Enforce]. Two different ones are refused.
func WithMode(m Mode) Option {
	return func(c *config) {
		if m > Observe {
			c.fail(fmt.Errorf("unknown mode %d", m))
		}
		if c.modeSet && c.mode != m {
			c.fail(errors.New("two modes, Enforce and Observe"))
		}
		c.mode, c.modeSet = m, true
	}
}

// WithObserver adds an observer; several are called in the order they were
// added. Nil is refused.
func WithObserver(o Observer) Option {
	return func(c *config) {
		if o == nil {
			c.fail(errors.New("nil observer"))
			return
		}
		c.observers = append(c.observers, o)
	}
}

// WithLogger sets where refusals (debug), would-be refusals (warn) and bypasses
// (info) are logged. By default nothing is logged. Nil is refused.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) {
		if l == nil {
			c.fail(errors.New("nil logger"))
		}
		c.logger = l
	}
}

// config is what the options of one database say, before they are checked.
type config struct {
	tables    []*table
	dialect   Dialect
	mode      Mode
	modeSet   bool
	observers []Observer
	logger    *slog.Logger
	errs      []error
}

func (c *config) fail(err error) { c.errs = append(c.errs, err) }
