package lease

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
)

// An Option configures [New].
type Option func(*config)

// WithDialect sets the dialect of a driver that sqlfence doesn't know. For a known driver, another dialect is invalid.
func WithDialect(d sqlfence.Dialect) Option {
	return func(c *config) { c.NameDialect(d) }
}

// WithObserver adds an observer. Observers are called in order. Nil is invalid.
func WithObserver(fn Observer) Option {
	return func(c *config) {
		if fn == nil {
			c.Fail(errors.New("nil observer"))
			return
		}
		c.observers = append(c.observers, fn)
	}
}

// WithLogger sets the logger for warnings, such as a lost lease or a token from [sqlfence.WarnToken] on. The default is
// [slog.Default]. Nil is invalid.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) { c.SetLogger(l) }
}

// WithListener makes releases notify waiters of other processes, which otherwise poll. All processes that release
// leases must set it. It needs PostgreSQL.
func WithListener(l Listener) Option {
	return func(c *config) {
		if l == nil {
			c.Fail(errors.New("nil listener"))
		}
		c.listener = l
	}
}

// WithProcedures makes [Leases.Setup] create the PostgreSQL procedures of docs/protocol.md for leases, and those of
// [tokens.WithProcedures].
func WithProcedures() Option { return func(c *config) { c.procedures = true } }

// WithDefaults sets terms for all leases. The terms of a call override them.
func WithDefaults(terms ...Term) Option {
	return func(c *config) { c.defaults = append(c.defaults, terms...) }
}

type config struct {
	dialectopt.Options
	dialect   *dialect
	spoken    sqlfence.Dialect // dialect's name
	listener  Listener
	observers []Observer
	defaults  []Term

	procedures bool
}

func configure(d driver.Driver, opts []Option) (*config, error) {
	c := new(config)
	dialectopt.Apply(c, opts)
	if _, err := newTerms(c.defaults); err != nil {
		c.Fail(err)
	}
	dialect, spoken := dialects.Find(&c.Options, d)
	if spoken != 0 {
		c.dialect, c.spoken = dialect(), spoken
		if c.procedures && c.dialect.procedures == "" {
			c.Fail(fmt.Errorf("procedures need PostgreSQL, not %v: leave WithProcedures out", spoken))
		}
		if c.listener != nil && c.dialect.addMarks == "" {
			c.Fail(fmt.Errorf("%v has no NOTIFY: leave WithListener out", spoken))
		}
	}
	if err := c.Err("lease"); err != nil {
		return nil, &invalidError{err}
	}
	return c, nil
}
