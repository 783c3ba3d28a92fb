package lease

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
)

// An Option configures [New].
type Option func(*config)

// WithDialect sets the dialect of a driver that sqlfence doesn't know.
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

// WithLogger sets the logger for warnings, such as a lost lease. The default is [slog.Default]. Nil is invalid.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) { c.SetLogger(l) }
}

// WithListener makes releases notify waiters of other processes, which otherwise poll. All processes must set it. It
// needs PostgreSQL.
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
		if c.listener != nil && c.dialect.addNotify == "" {
			c.Fail(fmt.Errorf("%v has no NOTIFY: leave WithListener out", spoken))
		}
	}
	if err := c.Err("lease"); err != nil {
		return nil, &invalidError{err}
	}
	return c, nil
}

// An Observer receives the events of leases, except from the methods with a [Lease.LockID], such as [Leases.Release].
// It is called on the goroutine of the call; for Lost, on a new one. It must be safe for concurrent use, must return
// soon and must not panic.
type Observer func(ctx context.Context, e Event)

// An Event is what happened to a lease.
type Event struct {
	Kind EventKind
	Key  string // in Unicode's form NFC

	Token  sqlfence.Token // zero for Contended
	Holder string         // for Contended the current one; may be empty
	Until  time.Time      // the end of the lease, by the server's clock; zero if unknown

	Attempts int           // for Acquired and Contended
	Waited   time.Duration // since the call began, for Acquired and Contended

	Err error // for Lost a [*LostError], for Released the release's or nil
}

type EventKind int

const (
	Acquired  EventKind = iota + 1 // acquired or resumed
	Contended                      // another holder has the lease
	Extended
	Released // by the holder
	Lost     // ended before its release
)

func (k EventKind) String() string {
	switch k {
	case Acquired:
		return "acquired"
	case Contended:
		return "contended"
	case Extended:
		return "extended"
	case Released:
		return "released"
	case Lost:
		return "lost"
	}
	return "unknown"
}

func (l *Lease) observe(ctx context.Context, kind EventKind, err error) {
	if len(l.leases.options.observers) == 0 {
		return
	}
	l.leases.report(ctx, Event{Kind: kind, Key: l.info.Key, Token: l.info.Token, Holder: l.info.Holder,
		Until: l.ExpiresAt(), Err: err})
}

// observe reports an attempt: the lease l, or nil and the outcome o. A lease that is free by now is not reported,
// because the attempt is repeated.
func (m *Leases) observe(ctx context.Context, a *acquisition, l *Lease, o *outcome) {
	if len(m.options.observers) == 0 {
		return
	}
	e := Event{Kind: Acquired, Key: a.key, Attempts: a.attempts, Waited: time.Since(a.began)}
	switch {
	case l != nil:
		e.Token, e.Holder, e.Until = l.info.Token, l.info.Holder, l.ExpiresAt()
	case o.live:
		e.Kind, e.Holder = Contended, shown(o.holder)
		if o.until.Valid {
			e.Until = time.UnixMicro(o.until.Int64)
		}
	default: // free by now
		return
	}
	m.report(ctx, e)
}

func (m *Leases) report(ctx context.Context, e Event) {
	for _, observe := range m.options.observers {
		observe(ctx, e)
	}
}
