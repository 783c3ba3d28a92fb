package tokens

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
)

// An Option configures a [Store].
type Option func(*config)

// WithDialect sets the dialect of a driver that sqlfence doesn't know.
func WithDialect(d sqlfence.Dialect) Option {
	return func(c *config) { c.NameDialect(d) }
}

// An Observer receives an event for each call of [Store.Issue] and [Store.IssueMany] with valid names, for metrics
// and traces. It runs on the goroutine of the call, with its context. It must be safe for concurrent use, must return
// soon and must not panic.
type Observer func(ctx context.Context, e Event)

// An Event is a call that an [Observer] receives. It must not be changed.
type Event struct {
	Names    []string         // normalized
	Tokens   []sqlfence.Token // in the order of the names; none with an error
	Duration time.Duration    // from the call to its end
	Calls    int              // calls that shared the statement; 0 if the call ended before its statement
	Err      error
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

// WithLogger sets the logger for warnings, such as a token from [sqlfence.WarnToken] on. The default is [slog.Default]
// at the time of logging. Nil is invalid.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) { c.SetLogger(l) }
}

// WithProcedures makes [Store.Setup] create or update the PostgreSQL procedures sqlfence_issue and sqlfence_adopt, for
// programs in other languages (docs/protocol.md). They commit, so they fail within a transaction. They need PostgreSQL
// 13 or later, and their callers the privileges of [Store.Issue]. On another database, the option is invalid.
func WithProcedures() Option { return func(c *config) { c.procedures = true } }

type config struct {
	dialectopt.Options
	dialect    *dialect
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
		if dialect, named := dialects.Find(&c.Options, db.Driver()); named != 0 {
			c.dialect = dialect()
		}
	}
	if c.procedures && c.dialect != nil && c.dialect.procedures == "" {
		c.Fail(errors.New("procedures need PostgreSQL: leave WithProcedures out"))
	}
	return c, c.Err("tokens")
}

func (s *Store) observe(ctx context.Context, began time.Time, e Event) {
	if len(s.options.observers) == 0 {
		return
	}
	e.Duration, e.Tokens = time.Since(began), slices.Clone(e.Tokens)
	for _, observe := range s.options.observers {
		observe(ctx, e)
	}
}
