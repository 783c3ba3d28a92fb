package lease

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
)

// An Option configures [Leases]. [New] checks all options together, and its error names
// all that are wrong; it is [ErrInvalid].
type Option func(*config)

// WithDialect names the dialect of a driver that sqlfence doesn't know. [New] refuses one
// that contradicts a known driver.
func WithDialect(d sqlfence.Dialect) Option {
	return func(c *config) { c.NameDialect(d) }
}

// WithObserver adds an observer; several are called in the order they were added. Nil is
// refused.
func WithObserver(fn Observer) Option {
	return func(c *config) {
		if fn == nil {
			c.Fail(errors.New("nil observer"))
			return
		}
		c.observers = append(c.observers, fn)
	}
}

// WithLogger sets the logger for warnings about leases that are lost and about tokens from
// [sqlfence.WarnToken] on, and for errors that no method can return, such as a failed
// release at the end of [Leases.Do]. The default is [slog.Default]. Nil is refused; to log nothing, use
// [slog.DiscardHandler].
func WithLogger(l *slog.Logger) Option {
	return func(c *config) {
		if l == nil {
			c.Fail(errors.New("nil logger"))
		}
		c.logger = l
	}
}

// WithListener makes [Leases.Release] send NOTIFY and waiters wake up on it, instead of
// polling; [PoolListener] makes one. Every process that releases leases must set it. It needs
// PostgreSQL; elsewhere [New] refuses it.
func WithListener(l Listener) Option {
	return func(c *config) {
		if l == nil {
			c.Fail(errors.New("nil listener"))
		}
		c.listener = l
	}
}

// WithDefaults sets terms for all leases. The terms of a call override them.
func WithDefaults(terms ...Term) Option {
	return func(c *config) { c.defaults = append(c.defaults, terms...) }
}

type config struct {
	dialectopt.Options
	dialect   dialect
	spoken    sqlfence.Dialect // dialect's name
	logger    *slog.Logger
	listener  Listener
	observers []Observer
	defaults  []Term
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
		return nil, &invalidError{err}
	}
	return c, nil
}
