package tokens

import (
	"database/sql/driver"
	"errors"
	"fmt"
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
	return func(c *config) {
		if c.dialect != 0 && c.dialect != d {
			c.fail(fmt.Errorf("two dialects, %v and %v", c.dialect, d))
		}
		if d == 0 {
			c.fail(errors.New("the zero dialect is none"))
		}
		c.dialect = d
	}
}

// WithLogger sets where a warning is logged for each token from
// [sqlfence.WarnToken] on that is issued (once for calls that were coalesced)
// or adopted. The default is [slog.Default]. Nil is refused; to log nothing,
// give a logger with [slog.DiscardHandler].
func WithLogger(l *slog.Logger) Option {
	return func(c *config) {
		if l == nil {
			c.fail(errors.New("nil logger"))
		}
		c.logger = l
	}
}

type config struct {
	dialect sqlfence.Dialect
	logger  *slog.Logger
	errs    []error
}

func (c *config) fail(err error) { c.errs = append(c.errs, err) }

// configure applies the options and settles the dialect.
func configure(d driver.Driver, opts []Option) (*config, error) {
	c := new(config)
	for _, opt := range opts {
		if opt == nil {
			c.fail(errors.New("nil option"))
			continue
		}
		opt(c)
	}
	if len(c.errs) == 0 { // else what was given doesn't stand: there is nothing to compare
		var err error
		if c.dialect, err = dialectopt.Resolve(d, c.dialect); err != nil {
			c.fail(err)
		}
	}
	if err := errors.Join(c.errs...); err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	return c, nil
}
