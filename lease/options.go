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

// WithProcedures has [Leases.Setup] create, on PostgreSQL, procedures for programs in other
// languages, which take leases and tokens by them, or bring them up to date:
//
//	CALL sqlfence_lease_acquire('books', 'worker 7', 30)  -- lock_id, token, expires_at, holder
//	CALL sqlfence_lease_extend(lock_id, 30)               -- expires_at
//	CALL sqlfence_lease_release(lock_id)
//
// and those of [github.com/sqlfence/sqlfence/tokens.WithProcedures]. What is said there holds for all of them. The
// times to live are in seconds, and may have a fraction: from 0.001 to 86400. Where another holder has the lease, the
// first one returns no lock_id and no token, but the holder and when its lease ends; it waits for no holder. The
// owner may be NULL; an owner gets its own live lease again, as by [Resume]. The other two fail with SQLSTATE
// FT002 where the lease has ended.
//
// They send the statements of [Leases.TryAcquire], [Leases.Extend] and [Leases.Release] by the same rules, so both
// can be used at once.
func WithProcedures() Option { return func(c *config) { c.procedures = true } }

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

	procedures bool
}

// configure applies the options and finds the dialect.
func configure(d driver.Driver, opts []Option) (*config, error) {
	c := new(config)
	dialectopt.Apply(c, opts)
	if _, err := newTerms(c.defaults); err != nil {
		c.Fail(err)
	}
	c.dialect, c.spoken = dialects.Find(&c.Options, d)
	if c.procedures && c.spoken != 0 {
		if create, _ := c.dialect.procedures(); create.text == "" {
			c.Fail(fmt.Errorf("procedures need PostgreSQL, not %v: leave WithProcedures out", c.spoken))
		}
	}
	if c.listener != nil && c.spoken != 0 && !c.dialect.notifies() {
		c.Fail(fmt.Errorf("%v has no NOTIFY: leave WithListener out", c.spoken))
	}
	if err := c.Err("lease"); err != nil {
		return nil, &invalidError{err}
	}
	return c, nil
}
