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
	return func(c *config) { c.NameDialect(d) }
}

// WithLogger sets where warnings go: tokens from [sqlfence.WarnToken] on, and
// what can't be returned, such as a release at the end of [Leases.Do] that
// failed. The default is [slog.Default]. Nil is refused; to log nothing, give a
// logger with [slog.DiscardHandler].
func WithLogger(l *slog.Logger) Option {
	return func(c *config) {
		if l == nil {
			c.Fail(errors.New("nil logger"))
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
			c.Fail(errors.New("nil listener"))
		}
		c.listener = l
	}
}

// WithDefaults sets terms for all leases; those of a call come after, and win.
func WithDefaults(terms ...Term) Option {
	return func(c *config) { c.defaults = append(c.defaults, terms...) }
}

type config struct {
	dialectopt.Options
	dialect  dialect
	spoken   sqlfence.Dialect // dialect's name
	logger   *slog.Logger
	listener Listener
	defaults []Term
}

// configure applies the options and finds the dialect.
func configure(d driver.Driver, opts []Option) (*config, error) {
	c := new(config)
	dialectopt.Apply(c, opts)
	if _, err := newTerms(c.defaults); err != nil {
		c.Fail(err)
	}
	c.dialect, c.spoken = dialects.Find(&c.Options, d)
	if c.listener != nil && c.spoken != 0 && !c.dialect.notifies() {
		c.Fail(fmt.Errorf("%v has no NOTIFY: leave WithListener out", c.spoken))
	}
	if err := c.Err("lease"); err != nil {
		return nil, err
	}
	return c, nil
}
