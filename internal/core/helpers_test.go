package core_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/nonce"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

func init() { nonce.Fix("nonce") }

var fenced = sqlfence.RowFence("fence")

func token(name string, value int64) sqlfence.Token { return sqlfence.Token{Name: name, Value: value} }

// open fences a recorder as a database that speaks SQLite's SQL.
func open(t testing.TB, r *fakedb.Recorder, opts ...sqlfence.Option) *sql.DB {
	t.Helper()
	return openAs(t, sqlfence.SQLite, r, opts)
}

// openPostgres is open for PostgreSQL.
func openPostgres(t testing.TB, r *fakedb.Recorder, opts ...sqlfence.Option) *sql.DB {
	t.Helper()
	return openAs(t, sqlfence.Postgres, r, opts)
}

func openAs(t testing.TB, d sqlfence.Dialect, r *fakedb.Recorder, opts []sqlfence.Option) *sql.DB {
	t.Helper()
	db, err := sqlfence.OpenDB(r, append([]sqlfence.Option{sqlfence.WithDialect(d)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // some tests close the database themselves
	return db
}

// A coded error looks to Retry like an error of lib/pq or pgx.
type coded string

func (c coded) Error() string    { return "SQLSTATE " + string(c) }
func (c coded) SQLState() string { return string(c) }

type baseError struct{ text string }

func (e *baseError) Error() string { return e.text }

// checkRefusal expects base unchanged, or an error that wraps base, matches only want, and has the text.
func checkRefusal(t *testing.T, err error, base *baseError, want error, text string) {
	t.Helper()
	if want == nil {
		if err != error(base) {
			t.Errorf("error = %#v, want the base driver's own, untouched", err)
		}
		return
	}
	if got := is(err); !slices.Equal(got, []error{want}) {
		t.Fatalf("error = %v, which is %v; want %v", err, got, want)
	}
	if err.Error() != text {
		t.Errorf("text = %q\nwant   %q", err.Error(), text)
	}
	if found := (*baseError)(nil); !errors.As(err, &found) || found != base {
		t.Errorf("errors.As doesn't find the base driver's error in %v", err)
	}
}

var sentinels = []error{
	sqlfence.ErrStale, sqlfence.ErrNotIssued, sqlfence.ErrNoFence, sqlfence.ErrOutOfScope, sqlfence.ErrUnguardable,
	sqlfence.ErrUnknownName, sqlfence.ErrConflict, sqlfence.ErrGone, sqlfence.ErrNoSerial, sqlfence.ErrLocked,
	sqlfence.ErrTokenLimit, sqlfence.ErrInvalid, sqlfence.ErrStandby,
}

// is lists the sentinels that errors.Is finds in err.
func is(err error) []error {
	return slices.DeleteFunc(slices.Clone(sentinels), func(s error) bool { return !errors.Is(err, s) })
}

type skipper struct{ *fakedb.RecorderConn }

func (skipper) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return nil, driver.ErrSkip
}
func (skipper) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return nil, driver.ErrSkip
}
