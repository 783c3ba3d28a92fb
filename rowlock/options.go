package rowlock

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
)

// An Option configures a [Table]. Column names are SQL identifiers, folded as the database folds them unless they are
// in double quotes.
type Option func(*config)

// WithKey sets the columns of the row's key, which must be unique and never NULL. The default is id.
func WithKey(names ...string) Option {
	return forTable("WithKey", func(c *config) {
		if len(names) == 0 {
			c.Fail(errors.New("WithKey without a column"))
		}
		c.key = names
	})
}

// WithSerial sets the version column, an integer that is never NULL. The default is serial.
func WithSerial(name string) Option {
	return forTable("WithSerial", func(c *config) { c.serial = name })
}

// WithColumns sets the lock's columns. The defaults are editedby, editedsince and editedexpiry. A [sqlfence.EditLock]
// on the table needs the same names.
func WithColumns(by, since, expiry string) Option {
	return forTable("WithColumns", func(c *config) { c.by, c.since, c.expiry = by, since, expiry })
}

// WithTTL sets how long a lock lasts if the Edit has no TTL: at least 1 ms, default 10 minutes.
func WithTTL(ttl time.Duration) Option {
	return forTable("WithTTL", func(c *config) {
		if ttl < time.Millisecond {
			c.Fail(fmt.Errorf("WithTTL: the TTL %v is less than 1ms", ttl))
		}
		c.ttl = ttl
	})
}

// WithNobody sets the value for no holder: nil (NULL, the default), 0 or "". A column that is NOT NULL needs it. When
// read, all three mean no holder, and so does a text that spells zero.
func WithNobody(value any) Option {
	return forTable("WithNobody", func(c *config) {
		plain, err := driver.DefaultParameterConverter.ConvertValue(value)
		if err != nil || plain != nil && plain != int64(0) && plain != "" {
			c.Fail(fmt.Errorf("WithNobody(%v): want nil, 0 or an empty text", value))
		}
		c.noHolder = plain
	})
}

// WithManager makes m list and free the table's locks. m must have the same [*sql.DB].
func WithManager(m *Manager) Option {
	return forTable("WithManager", func(c *config) {
		if m == nil {
			c.Fail(errors.New("WithManager: the Manager is nil"))
		}
		c.manager = m
	})
}

// WithDialect sets the dialect of a driver that sqlfence doesn't know.
func WithDialect(d sqlfence.Dialect) Option {
	return func(c *config) { c.NameDialect(d) }
}

type config struct {
	dialectopt.Options
	key               []string
	serial            string
	by, since, expiry string
	ttl               time.Duration
	noHolder          any
	manager           *Manager
	tableOnly         []string // the options given that mean nothing for a Manager
}

// forTable returns an option that only configures a Table.
func forTable(name string, set Option) Option {
	return func(c *config) {
		set(c)
		c.tableOnly = append(c.tableOnly, name)
	}
}

func configure(opts []Option) *config {
	c := &config{
		key: []string{"id"}, serial: "serial",
		by: "editedby", since: "editedsince", expiry: "editedexpiry",
		ttl: 10 * time.Minute,
	}
	dialectopt.Apply(c, opts)
	return c
}

// invalid returns all faults of the options of the Table or Manager called name.
func (c *config) invalid(name string) error {
	if err := c.Err(name); err != nil {
		return dialectopt.Invalid("rowlock", err)
	}
	return nil
}
