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

type config struct {
	dialectopt.Options
	dialect *dialect
	logger  *slog.Logger
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
	return c, c.Err("tokens")
}
