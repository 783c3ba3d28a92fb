package lease

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
)

// An Option configures [Leases]. Options are checked together by [New]; what
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

// WithLogger sets where warnings go: tokens from [sqlfence.WarnToken] on, and
// what can't be returned, such as a release at the end of [Leases.Do] that
// failed. The default is [slog.Default]. Nil is refused; to log nothing, give a
// logger with [slog.DiscardHandler].
func WithLogger(l *slog.Logger) Option {
	return func(c *config) {
		if l == nil {
			c.fail(errors.New("nil logger"))
		}
		c.logger = l
	}
}

// WithListener has waiters be woken by PostgreSQL's NOTIFY, and [Leases.Release]
// send it. It only helps where those who release have it too. Without one, and
// on SQLite, where it is refused, waiters poll.
func WithListener(l Listener) Option {
	return func(c *config) {
		if l == nil {
			c.fail(errors.New("nil listener"))
		}
		c.listener = l
	}
}

// WithDefaults sets terms for all leases; those of a call come after, and win.
func WithDefaults(terms ...Term) Option {
	return func(c *config) { c.defaults = append(c.defaults, terms...) }
}

type config struct {
	dialect  sqlfence.Dialect
	logger   *slog.Logger
	listener Listener
	defaults []Term
	errs     []error
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
	if _, err := newTerms(c.defaults); err != nil {
		c.fail(err)
	}
	if len(c.errs) == 0 { // else what was given doesn't stand: there is nothing to compare
		var err error
		if c.dialect, err = dialectopt.Resolve(d, c.dialect); err != nil {
			c.fail(err)
		}
	}
	if len(c.errs) == 0 && c.dialect == sqlfence.SQLite && c.listener != nil {
		c.fail(errors.New("a listener needs PostgreSQL"))
	}
	if err := errors.Join(c.errs...); err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	return c, nil
}
