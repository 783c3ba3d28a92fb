package sqlfence

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/sqlfence/sqlfence/internal/core"
)

// A Dialect is the SQL that a database speaks.
type Dialect = dialectID

// The dialects. MySQL is MariaDB's, too.
const (
	Postgres Dialect = iota + 1
	SQLite
	MySQL
)

// A Mode decides what becomes of a write that the guard refuses.
type Mode uint8

const (
	// Enforce refuses it. The default.
	Enforce Mode = iota
	// Observe lets it through and reports it to the observer as [WouldRefuse]. It does the same
	// with a write if its guard fails for another reason, such as a missing column; the event then
	// has the database's error. A write still raises the tokens stored in its rows to its own. A
	// stored token falls only if the statement is sent as it was written, because it can't be
	// guarded, as MySQL's REPLACE, or because its guard failed. A write that would have been
	// refused costs a second statement, and in a PostgreSQL transaction every guarded write costs a
	// savepoint.
	Observe
)

// An Option configures a fenced database. Options are checked together when the
// database is opened, and all their faults are reported in one error, which is
// [ErrInvalid].
type Option func(*options)

// WithTable registers a table: name is an SQL identifier, "books" or "shop.books", folded as the
// database folds it unless it is written in double quotes. Without rules the table is guarded by
// the [Ledger]. "books" stands for books in any schema; "shop.books" for that one, and for an
// unqualified books, which may resolve to it. A write of an unqualified name that may be one of several
// registrations, such as "shop.books" and "blog.books", is refused. A table that is registered twice, also with and
// without its schema, is refused; so are a nil rule, and rules that contradict each other. Whether
// the table exists isn't looked at but by package verify. The tables of sqlfence's own
// packages (fencing_tokens, fencing_leases, rowlocks, fencing_changes) are always guarded, and refused here. In
// PostgreSQL write a name with capital letters outside of ASCII in double quotes: without them the
// database folds it in a way that depends on its encoding.
//
// In PostgreSQL an application can also write a table's rows by the name of a
// partition, a parent or a child. Register those as well; with one [Resource] they
// take the same tokens:
//
//	sqlfence.WithTable("books", sqlfence.RowFence("fence_token")),
//	sqlfence.WithTable("books_2026", sqlfence.RowFence("fence_token"), sqlfence.Resource("books")),
//
// The name "*" stands for all tables that aren't registered by their own names, and "shop.*" for those of a schema: a
// table that a later release adds is guarded from its first write on. Each takes tokens of its own name, without a
// schema under "*", unless there is a [Resource]. Except single tables by [Exempt]; the rules [Claim] and [Sealed]
// go with single tables alone. Where a pattern stands, code that may write (DO, CALL with a text) is refused.
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

// WithDialect names the dialect. It is needed only for drivers that sqlfence
// doesn't know; one that contradicts a known driver is refused, and so are two different
// ones.
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

// WithSchema names the schema, or in MySQL the database, of sqlfence's own tables: fencing_tokens,
// fencing_leases and rowlocks. Guards ask the ledger there, and packages tokens, lease, rowlock and schema, on this
// database, keep their tables there, wherever the session finds names without a schema. name is an SQL
// identifier as for [WithTable]; the schema has to exist, and Setup creates the tables in it.
//
// By default they are where the session finds their names: in PostgreSQL by its search_path, in MySQL in the
// current database. Processes that find different ones have different ledgers, and a stale write of one
// passes the other's. So give all processes the same schema if their sessions may differ in that.
//
// On SQLite it is refused: each file has a ledger of its own, for its tables. So are two different schemas.
func WithSchema(name string) Option {
	return func(o *options) {
		giveOnce(o, "WithSchema", "name", &o.Schema, name)
	}
}

// giveOnce sets what an option gives: a text that isn't empty, nor another one than before.
func giveOnce(o *options, option, what string, to *string, text string) {
	switch {
	case text == "":
		o.Fail(fmt.Errorf("%s without a %s", option, what))
	case *to != "" && *to != text:
		o.Fail(fmt.Errorf("%s twice, %q and %q", option, *to, text))
	}
	*to = text
}

// WithMode sets the mode of the tables that have none of their own ([InMode]); the
// default is [Enforce]. Two different ones are refused.
//
// sqlfence's own tables, and statements that are refused for no single table, such as a DO without
// visible code, are observed only if nothing is enforced: with WithMode(Observe) and no
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

// WithoutGuards lets every statement of the database pass as it was written, as if each
// context were one of [Bypass] with this reason: for a database that a tool for migrations
// uses, which takes no context of yours. Each statement that would have been guarded or refused
// is a [Bypassed] event. It takes precedence over the modes, so the application's
// options can be used with this one added to them. The reason of a context's own Bypass is told
// instead of this one.
//
// Open another database for it than the application's, and close it behind the migration.
// A source of tokens isn't asked there. An empty reason is refused, and so are two different
// ones.
func WithoutGuards(reason string) Option {
	return func(o *options) {
		giveOnce(o, "WithoutGuards", "reason", &o.Bypass, reason)
	}
}

// WithUntestedServer takes the risk of a server by its name, such as "CockroachDB". sqlfence refuses
// guarded writes ([UnguardableError]) on servers that speak the protocol of PostgreSQL or MySQL and have
// locks or an isolation of their own, since no test has shown what its guards are worth there, and
// one connection can't show it. docs/servers.md has the names. The option may be given several times;
// an empty name is refused.
//
// It doesn't help a server that doesn't raise the error that a guard refuses with. Each connection
// has to prove that, before its first guarded write.
func WithUntestedServer(name string) Option {
	return func(o *options) {
		if name == "" {
			o.Fail(errors.New("WithUntestedServer without a name"))
		}
		o.Untested = append(o.Untested, name)
	}
}

// WithObserver adds an observer for events of these kinds. Without kinds it gets all but [Guarded]
// and [Passed], which are about most of a program's statements; a kind without an observer costs
// nothing. Several observers are called in the order they were added. Nil, and a kind that doesn't
// exist, are refused.
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

// WithLogger sets where refusals and would-be refusals (warn), bypasses and raw access (info), and
// writes of [Optional] tables without a token (debug) are logged. By default nothing is logged, but
// for what [Observe] lets through: where no observer gets it, [slog.Default] does. Of several the
// last holds; nil is refused.
//
// A would-be refusal is logged when its statement is sent for the first time. Then one line a minute has the
// statement without its values, and the attribute times: how many such writes followed.
//
// A refusal has the attributes query and error; where they are known table, token, or
// serial, current, which is the token or serial in the database or who holds the lock; and
// statement: INSERT, UPDATE, DELETE, MERGE or the statement's first word.
func WithLogger(l *slog.Logger) Option {
	return func(o *options) {
		if l == nil {
			o.Fail(errors.New("nil logger"))
		}
		o.Logger = l
	}
}

// WithStatementCache sets how many guarded statements each connection to a SQLite database keeps
// prepared, so that SQLite doesn't compile them again when DB.Exec, Tx.Query and so on execute them
// next. The least recently used is closed first, and all with the
// connection. 0 keeps none; negative is refused; of several the last holds. It has no effect with
// PostgreSQL and MySQL: pgx has a cache of its own, and sql.Stmt works with all drivers.
//
// The default is 64 with the drivers mattn/go-sqlite3 and modernc.org/sqlite, where a
// guarded write is faster then than the plain one, and 0 with all others, or if
// another wrapper stands between sqlfence and the driver.
//
// Statements of at most 16 KiB are kept if the guard adds arguments to them, and none of
// their tables is in Observe mode. With mattn/go-sqlite3 they must not return rows.
//
// Statements that may change what the kept ones mean, such as CREATE, PRAGMA or ATTACH, and
// [BaseConn], have the connection drop them first. An authorizer of SQLite's is asked when a
// statement is prepared, not at each execution.
func WithStatementCache(n int) Option {
	return func(o *options) {
		if n < 0 {
			o.Fail(fmt.Errorf("WithStatementCache(%d): the number is negative", n))
		}
		o.Statements = &n
	}
}
