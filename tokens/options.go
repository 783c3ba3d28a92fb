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

// WithDialect names the dialect. Only drivers that sqlfence doesn't know need it. A
// dialect that contradicts a known driver is invalid.
func WithDialect(d sqlfence.Dialect) Option {
	return func(c *config) { c.NameDialect(d) }
}

// WithObserver adds an observer; several are called in the order they were added. Nil is invalid.
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

// WithProcedures has [Store.Setup] create, on PostgreSQL, procedures for programs in other languages, which take
// tokens by them, or bring them up to date:
//
//	CALL sqlfence_issue('books')      -- returns a row with the column token
//	CALL sqlfence_adopt('books', 42)  -- SQLSTATE FT002 if a higher one is known
//
// They send the statements of [Store.Issue] and [Store.Adopt] by the same rules, so both can be used at
// once. They commit, so they are refused within a transaction (SQLSTATE 2D000). Their caller needs the privileges
// that Issue needs; docs/protocol.md shows their use. A fenced database may refuse such a call, where the name is
// a table's: call the Store there.
//
// They need PostgreSQL 13 or newer, and the role CREATE on the schema of the table fencing_tokens, in
// which they are created. Where Setup can't create them, and they aren't there as it would create them, it fails.
// On another database [New] refuses the option.
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
