package tokens

import (
	"database/sql"
	"errors"
	"log/slog"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
)

// An Option configures a [Store].
type Option func(*config)

// WithDialect sets the dialect of a driver that sqlfence doesn't know. For a known driver, another dialect is
// invalid.
func WithDialect(d sqlfence.Dialect) Option {
	return func(c *config) { c.NameDialect(d) }
}

// WithObserver adds an observer. Observers are called in the order in which they were added. Nil is invalid.
func WithObserver(fn Observer) Option {
	return func(c *config) {
		if fn == nil {
			c.Fail(errors.New("nil observer"))
			return
		}
		c.observers = append(c.observers, fn)
	}
}

// WithLogger sets the logger for warnings: a token from [sqlfence.WarnToken] on, a server that doesn't show its
// timeline, and a ledger with a column that is too small. The default is [slog.Default] at the time of logging. Nil
// is invalid.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) {
		if l == nil {
			c.Fail(errors.New("nil logger"))
		}
		c.logger = l
	}
}

// WithProcedures makes [Store.Setup] create or update the PostgreSQL procedures sqlfence_issue and sqlfence_adopt,
// for programs in other languages. The procedures commit, so they fail within a transaction. They need PostgreSQL 13
// or later, and their callers the privileges of [Store.Issue]. On another database, the option is invalid.
// docs/protocol.md describes their use.
func WithProcedures() Option { return func(c *config) { c.procedures = true } }

type config struct {
	dialectopt.Options
	dialect    *dialect
	logger     *slog.Logger
	procedures bool
	observers  []Observer
}

// configure applies the options and finds the dialect.
func configure(db *sql.DB, opts []Option) (*config, error) {
	c := new(config)
	dialectopt.Apply(c, opts)
	if db == nil {
		c.Fail(errors.New("nil database"))
	} else {
		c.dialect, _ = dialects.Find(&c.Options, db.Driver())
	}
	if c.procedures && c.dialect != nil && c.dialect.procedures == "" {
		c.Fail(errors.New("procedures need PostgreSQL: leave WithProcedures out"))
	}
	return c, c.Err("tokens")
}
