package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// unknownDriver is a driver that sqlfence doesn't know. Open fails.
type unknownDriver struct{}

func (unknownDriver) Open(string) (driver.Conn, error) { return nil, errors.New("no database") }

func init() { sql.Register("unknown", unknownDriver{}) }

type deafListener struct{}

func (deafListener) Listen(ctx context.Context, _ string, _ func(string)) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestNewRefusesWhatContradicts(t *testing.T) {
	db, err := sql.Open("unknown", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	postgres, sqlite := WithDialect(sqlfence.Postgres), WithDialect(sqlfence.SQLite)
	for _, test := range []struct {
		name string
		db   *sql.DB
		opts []Option
		want string // part of the error; empty: none
	}{
		{"nil database", nil, nil, "nil database"},
		{"unknown driver", db, nil, "WithDialect"},
		{"unknown driver, dialect given", db, []Option{postgres}, ""},
		{"same dialect twice", db, []Option{sqlite, sqlite}, ""},
		{"two dialects", db, []Option{sqlite, postgres}, "two dialects, SQLite and PostgreSQL"},
		{"zero dialect", db, []Option{WithDialect(0)}, "zero"},
		{"no such dialect", db, []Option{WithDialect(99)}, "not supported"},
		{"nil logger", db, []Option{sqlite, WithLogger(nil)}, "nil logger"},
		{"logger", db, []Option{sqlite, WithLogger(slog.New(slog.DiscardHandler))}, ""},
		{"nil observer", db, []Option{sqlite, WithObserver(nil)}, "nil observer"},
		{"nil listener", db, []Option{postgres, WithListener(nil)}, "nil listener"},
		{"listener", db, []Option{postgres, WithListener(deafListener{})}, ""},
		{"listener on SQLite", db, []Option{sqlite, WithListener(deafListener{})}, "has no NOTIFY"},
		{"defaults", db, []Option{sqlite, WithDefaults(TTL(time.Second))}, ""},
		{"bad defaults", db, []Option{sqlite, WithDefaults(TTL(0))}, "ttl of 0s"},
		{"nil option", db, []Option{nil}, "nil option"},
		{"all at once", db, []Option{nil, WithLogger(nil)}, "nil option\nnil logger"},
	} {
		t.Run(test.name, func(t *testing.T) {
			leases, err := New(test.db, test.opts...)
			switch {
			case test.want == "" && (err != nil || leases == nil):
				t.Errorf("New = %v, %v", leases, err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || leases != nil):
				t.Errorf("New = %v, %v; want an error with %q", leases, err, test.want)
			case test.want != "" && strings.Count(err.Error(), "lease: ") != 1:
				t.Errorf("not prefixed once: %v", err)
			case test.want != "" && !(errors.Is(err, ErrInvalid) && errors.Is(err, sqlfence.ErrInvalid)):
				t.Errorf("%v is not ErrInvalid", err)
			}
		})
	}
}

// The errors' texts carry the prefix once.
func TestErrorsHaveThePrefixOnce(t *testing.T) {
	token := sqlfence.Token{Name: "books", Value: 7}
	for want, err := range map[string]error{
		`lease: held by another: key "books" (attempts: 3); try again later`:                                                                             &HeldError{Key: "books", Attempts: 3},
		`lease: held by another ("me") until 1970-01-01T00:00:07Z unless extended: key "books" (attempts: 1); try again later`:                           &HeldError{Key: "books", Holder: "me", Until: time.Unix(7, 0), Attempts: 1},
		`lease: not held: the lease has expired, and another holder may have the key; acquire a new lease`:                                               &NotHeldError{Expired: true},
		`lease: not held: no live lease has this lock id: it has ended, or was never granted here; acquire a new lease`:                                  &NotHeldError{},
		`lease: lost: books:000000000000007: not extended in time: another holder may have taken over; stop working, and acquire a new lease`:            &LostError{Token: token, Reason: "not extended in time"},
		`lease: lost: books:000000000000007: not extended in time: another holder may have taken over; stop working, and acquire a new lease: no answer`: &LostError{Token: token, Reason: "not extended in time", err: errors.New("no answer")},
		`lease: invalid argument: a ttl of 0s, want 1ms to 24h0m0s`:                                                                                      checkTTL(0),
		`lease: invalid argument: a lock id of 5 characters, want 22`:                                                                                    validateLockID("short"),
		`lease: invalid argument: the key names its tokens: a token's name has 513 bytes, at most 512 are allowed`:                                       keyError(strings.Repeat("k", 513)),
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

func keyError(key string) error {
	_, err := NormalizeKey(key)
	return err
}

func TestInvalidErrorKeepsItsCause(t *testing.T) {
	cause := errors.New("cause")
	if err := error(&invalidError{cause}); !errors.Is(err, cause) || !errors.Is(err, ErrInvalid) || err.Error() != "cause" {
		t.Errorf("%v", err)
	}
}
