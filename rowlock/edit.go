package rowlock

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// An Edit is a user's wish to edit a row, at the version that the user has seen.
// It is a plain value: a web application makes it anew from each request.
type Edit struct {
	// ID is the value of the row's key column; of several columns a [Composite].
	ID any

	// Serial is the version of the row that the user has read. [Table.LoadLocked]
	// reads it; the other methods refuse a row that has another one.
	Serial int64

	// User is who edits: an integer, a text, or a driver.Valuer that yields one.
	// Nil, 0, "" and texts that are 0 as a number, such as "-0", mean nobody and
	// are refused.
	User any

	// TTL is how long the lock lasts unless it is renewed: at least 1 ms; 0 means
	// the table's (see [TTL]). SQLite drops what is less than a millisecond.
	TTL time.Duration

	// Session tells the [Manager] by which of the user's sessions the lock is
	// kept alive. Empty means by none; it has no meaning without a Manager.
	Session string
}

// A Composite is the key of a row in several columns, in the order of [Key].
type Composite []any

// A Lock is what is known of a row's lock at one time.
type Lock struct {
	Serial int64     // the row's version
	By     string    // the holder's id as text; empty if nobody holds the lock
	Since  time.Time // when the holder started to edit
	Expiry time.Time // when the lock lapses; zero if the database says never
}

// checked is an Edit whose values are fit to be sent.
type checked struct {
	Edit
	key  []any
	user driver.Value
}

func (t *Table) check(e Edit) (c checked, err error) {
	c.Edit = e
	if c.key, err = t.key(e.ID); err != nil {
		return c, err
	}
	if c.user, err = userID(e.User); err != nil {
		return c, err
	}
	if c.TTL == 0 {
		c.TTL = t.ttl
	}
	return c, checkTTL(c.TTL)
}

// key returns the values of the key columns.
func (t *Table) key(id any) ([]any, error) {
	values, ok := id.(Composite)
	if !ok {
		values = Composite{id}
	}
	if len(values) != len(t.keys) {
		return nil, fmt.Errorf("rowlock: table %q: %d values for a key of %d columns", t.name, len(values), len(t.keys))
	}
	for _, v := range values {
		if plain, err := driver.DefaultParameterConverter.ConvertValue(v); err == nil && plain == nil {
			return nil, fmt.Errorf("rowlock: table %q: the key is NULL", t.name)
		}
	}
	return values, nil
}

// userID returns the value that stands for a user in the database.
func userID(user any) (driver.Value, error) {
	value, err := driver.DefaultParameterConverter.ConvertValue(user)
	if err != nil {
		return nil, fmt.Errorf("rowlock: the user's id is none: %w", err)
	}
	nobody := false
	switch v := value.(type) {
	case nil:
		nobody = true
	case int64:
		nobody = v == 0
	case string:
		nobody = v == "" || isZero(v) // a column of integers takes it for 0
	default:
		return nil, fmt.Errorf("rowlock: the user's id is a %T, want an integer or a text", value)
	}
	if nobody {
		return nil, errors.New(`rowlock: the user's id is NULL, zero or empty, which means nobody`)
	}
	return value, nil
}

// isZero reports whether a database may read text as the number 0: "0", "00",
// "-0", " 0", in SQLite also "0.0".
func isZero(text string) bool {
	text = strings.TrimSpace(text)
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		integer, err := strconv.ParseInt(text, 0, 64) // "0x0", "0b0", "0_0"
		return err == nil && integer == 0
	}
	return number == 0
}

func checkTTL(ttl time.Duration) error {
	if ttl < time.Millisecond {
		return fmt.Errorf("rowlock: the ttl %v is less than 1ms", ttl)
	}
	return nil
}
