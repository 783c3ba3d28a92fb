package sqlfence

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/sqlfence/sqlfence/internal/core"
)

// A Dialect identifies the SQL of a database. Its String method returns the database's name. The zero Dialect is none.
type Dialect = dialectID

// The dialects. MySQL is also the dialect of MariaDB.
const (
	Postgres Dialect = iota + 1
	SQLite
	MySQL
)

// A Mode decides what happens to a refused write (see [WithMode], [InMode]).
type Mode uint8

const (
	// Enforce, the default, refuses the write.
	Enforce Mode = iota
	// Observe reports the write as [WouldRefuse] and sends it without the guard, even if the guard fails with another
	// error, such as a missing column. Accepted writes store their tokens. docs/adopting.md describes the cost.
	Observe
)

// An Option configures a fenced database. Opening the database reports all invalid options and rules in one error,
// which is [ErrInvalid]. A nil, empty, negative or unknown argument is invalid, and so is a repeated option or rule
// with a different argument, unless its comment allows it.
type Option func(*options)

// WithTable registers a table, and guards it by rules, or by [Ledger] if there are none. name is an SQL identifier,
// "books" or "shop.books", folded as the database folds it unless it is in double quotes. "books" matches books in
// every schema; "shop.books" matches that table and an unqualified books. A write with a name that matches several
// registrations is refused. Package verify checks that the table exists.
//
// Contradicting rules, a table registered twice, and sqlfence's own tables, which are always guarded, are [ErrInvalid].
//
// "*" registers all other tables, and "shop.*" those of a schema, except for [Exempt] tables. docs/rules.md describes
// patterns, and how to register PostgreSQL's partitions, parents and children.
func WithTable(name string, rules ...Rule) Option {
	return func(o *options) {
		t := &registration{Name: name}
		for _, rule := range rules {
			if rule == nil {
				t.Fail(errors.New("nil rule"))
				continue
			}
			rule(t)
		}
		o.Tables = append(o.Tables, t)
	}
}

// WithDialect names the dialect of an unknown driver. A dialect that contradicts a known driver is [ErrInvalid].
func WithDialect(d Dialect) Option {
	return func(o *options) {
		if !core.IsDialect(d) {
			o.Fail(fmt.Errorf("unknown dialect %d", d))
			return
		}
		if o.Dialect != 0 && o.Dialect != d {
			o.Fail(fmt.Errorf("two dialects, %v and %v", o.Dialect, d))
		}
		o.Dialect = d
	}
}

// WithSchema names the existing schema, in MySQL the database, of fencing_tokens, fencing_leases and rowlocks for
// guards and packages tokens, lease, rowlock and schema. name is an SQL identifier as for [WithTable]. By default the
// session finds these tables by PostgreSQL's search_path or in MySQL's current database.
//
// All processes must use the same schema, because one ledger doesn't refuse another's stale tokens. On SQLite, where
// each file has a ledger, WithSchema is [ErrInvalid].
func WithSchema(name string) Option {
	return func(o *options) {
		giveOnce(o, "WithSchema", "name", &o.Schema, name)
	}
}

// giveOnce sets an option's text, which must not be empty or contradict an earlier text.
func giveOnce(o *options, option, what string, to *string, text string) {
	switch {
	case text == "":
		o.Fail(fmt.Errorf("%s without a %s", option, what))
	case *to != "" && *to != text:
		o.Fail(fmt.Errorf("%s twice, %q and %q", option, *to, text))
	}
	*to = text
}

// WithMode sets the mode of tables without [InMode]; the default is [Enforce]. With Observe, writes to sqlfence's own
// tables, and statements such as dynamic SQL that may write to any table, are refused only if a table has
// InMode(Enforce).
func WithMode(m Mode) Option {
	return func(o *options) {
		if m > Observe {
			o.Fail(fmt.Errorf("unknown mode %d", m))
		}
		if o.ModeSet && o.Mode != core.Mode(m) {
			o.Fail(errors.New("WithMode twice, with Enforce and Observe"))
		}
		o.Mode, o.ModeSet = core.Mode(m), true
	}
}

// WithoutGuards sends every statement as under [Bypass], for migration tools that take no context. Its [Bypassed]
// events have the context's Bypass reason or else reason. WithoutGuards overrides modes and [WithTokenSource]: so a
// program can open a second sql.DB for migrations with the application's options and this option (docs/migrations.md).
func WithoutGuards(reason string) Option {
	return func(o *options) {
		giveOnce(o, "WithoutGuards", "reason", &o.Bypass, reason)
	}
}

// WithUntestedServer permits guarded writes on a server on which guards were never tested, such as "CockroachDB".
// Otherwise these writes fail with an [UnguardableError] that names the server (docs/servers.md). The option may be
// repeated. Each connection still tests that the server throws a guard's error.
func WithUntestedServer(name string) Option {
	return func(o *options) {
		if name == "" {
			o.Fail(errors.New("WithUntestedServer without a name"))
		}
		o.Untested = append(o.Untested, name)
	}
}

// WithObserver adds an observer for events of these kinds, or without kinds for all events except [Guarded] and
// [Passed]. Observers are called in the order of their options.
func WithObserver(fn Observer, kinds ...EventKind) Option {
	return func(o *options) {
		if fn == nil {
			o.Fail(errors.New("nil observer"))
			return
		}
		l, err := newListener(fn, kinds)
		if err != nil {
			o.Fail(err)
		}
		o.Observers = append(o.Observers, l)
	}
}

// WithLogger sets the logger (docs/telemetry.md) for refusals, [WouldRefuse] events and writes without a response
// (warn), bypasses and raw access (info), and [Unfenced] writes (debug). By default only WouldRefuse events that no
// observer receives are logged, with [slog.Default]. If they repeat for a statement, a line each minute has their
// number. The last WithLogger is used.
func WithLogger(l *slog.Logger) Option {
	return func(o *options) {
		if l == nil {
			o.Fail(errors.New("nil logger"))
		}
		o.Logger = l
	}
}

// WithStatementCache sets how many guarded statements of DB.Exec, Tx.Query and similar calls a connection to SQLite
// keeps prepared (docs/sqlite.md). The default is 64 with mattn/go-sqlite3 and modernc.org/sqlite, and 0 with other
// drivers or with a wrapper between sqlfence and the driver. The last WithStatementCache is used.
func WithStatementCache(n int) Option {
	return func(o *options) {
		if n < 0 {
			o.Fail(fmt.Errorf("WithStatementCache(%d): the number is negative", n))
		}
		o.Statements = &n
	}
}
