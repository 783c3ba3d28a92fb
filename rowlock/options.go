package rowlock

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
)

// An Option configures a [Table]. Options are checked together by [New]; what
// contradicts is refused there. Column names are SQL identifiers, folded as the
// database folds them unless they are written in double quotes.
type Option func(*config)

// Key names the columns that tell the rows apart, together unique and never
// NULL. The default is id.
func Key(names ...string) Option {
	return func(c *config) {
		if len(names) == 0 {
			c.fail(errors.New("Key without a column"))
		}
		c.key = names
	}
}

// Serial names the version column: an integer, never NULL, that every change of
// the row raises. The default is serial.
func Serial(name string) Option {
	return func(c *config) { c.serial = name }
}

// Columns names the three columns of the lock. The defaults are editedby,
// editedsince and editedexpiry.
func Columns(by, since, expiry string) Option {
	return func(c *config) { c.by, c.since, c.expiry = by, since, expiry }
}

// TTL sets how long a lock lasts for which no other time is given: at least 1 ms.
// The default is 10 minutes.
func TTL(ttl time.Duration) Option {
	return func(c *config) {
		if ttl < time.Millisecond {
			c.fail(fmt.Errorf("the ttl %v is less than 1ms", ttl))
		}
		c.ttl = ttl
	}
}

// Nobody sets what is written to the column of the holder where there is none:
// nil (NULL, the default), 0 or "". It is for a column that is NOT NULL. When
// read, all three mean nobody.
func Nobody(value any) Option {
	return func(c *config) {
		plain, err := driver.DefaultParameterConverter.ConvertValue(value)
		if err != nil || plain != nil && plain != int64(0) && plain != "" {
			c.fail(fmt.Errorf("Nobody(%v): want nil, 0 or an empty text", value))
		}
		c.nobody = plain
	}
}

// Managed makes m know the table's locks. m must be of the same database.
func Managed(m *Manager) Option {
	return func(c *config) {
		if m == nil {
			c.fail(errors.New("Managed by a nil Manager"))
		}
		c.manager = m
	}
}

// WithDialect names the dialect, as for package tokens: it is needed only for
// drivers that sqlfence doesn't know, and [sqlfence.MySQL] is refused.
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

// config is what the options say, before they are checked.
type config struct {
	dialect           sqlfence.Dialect
	key               []string
	serial            string
	by, since, expiry string
	ttl               time.Duration
	nobody            any
	manager           *Manager
	errs              []error
}

func (c *config) fail(err error) { c.errs = append(c.errs, err) }

// configure applies the options.
func configure(opts []Option) *config {
	c := &config{
		key: []string{"id"}, serial: "serial",
		by: "editedby", since: "editedsince", expiry: "editedexpiry",
		ttl: 10 * time.Minute,
	}
	for _, opt := range opts {
		if opt == nil {
			c.fail(errors.New("nil option"))
			continue
		}
		opt(c)
	}
	return c
}
