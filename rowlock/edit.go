package rowlock

import (
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence/internal/editlock"
)

// An Edit names a user, the row to edit, and the row's version. An invalid field is [sqlfence.ErrInvalid].
type Edit struct {
	ID     any   // the value of the row's key column, or a [CompositeKey]
	Serial int64 // the version of the row that the user has read, for example by [Table.LoadLocked]

	// User is the ID of the user: an integer, a text, or a [driver.Valuer] that returns one of these. Nil, 0, the empty
	// text, and texts that spell the number 0, such as "00", are invalid.
	User any

	// TTL is how long the lock lasts unless it is renewed: at least 1 ms, or 0 for the table's TTL ([WithTTL]). SQLite
	// rounds it up to whole milliseconds.
	TTL time.Duration

	Session string // the user's session in the [Manager]; empty if there is none
}

// A CompositeKey is a key of several columns, in the order of [WithKey].
type CompositeKey []any

// A Lock is the state of a row's lock at one time.
type Lock struct {
	Serial int64     // the row's version
	By     string    // the holder's ID as text; empty if no user holds the lock
	Since  time.Time // when the holder took the lock, or took it again after a lapse
	Expiry time.Time // when the lock lapses; zero if no user holds the lock
}

// checkedEdit is an Edit with values for the database.
type checkedEdit struct {
	Edit
	key  []any
	user driver.Value
}

func (t *Table) check(e Edit) (c checkedEdit, err error) {
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
	return c, checkDuration("TTL", c.TTL)
}

// key returns the values of the key columns.
func (t *Table) key(id any) ([]any, error) {
	values, ok := id.(CompositeKey)
	if !ok {
		values = CompositeKey{id}
	}
	if len(values) != len(t.keys) {
		return nil, invalid("table %q: number of key values: got %d, want %d", t.name, len(values), len(t.keys))
	}
	for _, v := range values {
		if plain, err := driver.DefaultParameterConverter.ConvertValue(v); err == nil && plain == nil {
			return nil, invalid("table %q: the key is NULL", t.name)
		}
	}
	return values, nil
}

// userID returns a user's ID as an integer or a text.
func userID(user any) (driver.Value, error) {
	value, err := driver.DefaultParameterConverter.ConvertValue(user)
	if err != nil {
		return nil, invalid("unsupported user ID %T: %w", user, err)
	}
	switch value.(type) {
	case nil:
		return nil, invalid("the user ID is nil, which means nobody")
	case int64, string:
	default:
		return nil, invalid("unsupported user ID %T: want an integer or a text", user)
	}
	if editlock.IsNoHolder(fmt.Sprint(value)) {
		return nil, invalid("the user ID %#v means nobody", value)
	}
	return value, nil
}

func checkDuration(name string, d time.Duration) error {
	if d < time.Millisecond {
		return invalid("the %s %v is less than 1ms", name, d)
	}
	return nil
}
