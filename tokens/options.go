package tokens

import (
	"database/sql"
	"errors"
	"log/slog"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
)

// An Option configures a [Store]. [New] checks all options and reports every fault in
// one error, which is [sqlfence.ErrInvalid].
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

// WithLogger sets the logger for warnings: for each token from [sqlfence.WarnToken] on that is
// issued (once for coalesced calls) or adopted, for a server that doesn't show its timeline, and
// for a ledger with a column that is too small. The default is [slog.Default] at the time of
// logging. Nil is invalid; to log nothing, pass a logger with [slog.DiscardHandler].
func WithLogger(l *slog.Logger) Option {
	return func(c *config) {
		if l == nil {
			c.Fail(errors.New("nil logger"))
		}
		c.logger = l
	}
}

// WithProcedures makes [Store.Setup] create or update PostgreSQL procedures that issue and adopt tokens, for
// programs in other languages:
//
//	CALL sqlfence_issue('books')      -- returns a row with the column token
//	CALL sqlfence_adopt('books', 42)  -- SQLSTATE FT002 if a higher token is known
//
// The procedures commit, so they fail within a transaction (SQLSTATE 2D000). Callers need the privileges of
// [Store.Issue]. They need PostgreSQL 13 or later; on another database, WithProcedures is invalid.
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
