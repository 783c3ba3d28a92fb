package tokens

import (
	"database/sql"
	"errors"
	"log/slog"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
)

// An Option configures a [Store]. Options are checked together by [New]; what
// contradicts is refused there.
type Option func(*config)

// WithDialect names the dialect. It is needed only for drivers that sqlfence
// doesn't know; one that contradicts a known driver is refused, and so is
// [sqlfence.MySQL], which is not supported.
func WithDialect(d sqlfence.Dialect) Option {
	return func(c *config) { c.NameDialect(d) }
}

// WithLogger sets where a warning is logged for each token from
// [sqlfence.WarnToken] on that is issued (once for calls that were coalesced)
// or adopted. The default is [slog.Default]. Nil is refused; to log nothing,
// give a logger with [slog.DiscardHandler].
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
