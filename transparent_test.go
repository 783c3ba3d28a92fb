package sqlfence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// Fenced connections have exactly the optional interfaces of the base driver's, because database/sql depends on them.

type resetter struct{ calls *int }

func (r resetter) ResetSession(context.Context) error { *r.calls++; return nil }

type validator struct{ valid *bool }

func (v validator) IsValid() bool { return *v.valid }

// database/sql keeps a connection whose transaction was cancelled only if it has
// both interfaces, so none of them may be claimed without need.
func TestResetterAndValidatorAreTheBases(t *testing.T) {
	resets, valid := 0, true
	r, v := resetter{&resets}, validator{&valid}
	for _, tt := range []struct {
		name                string
		form                func(*fakedb.RecorderConn) driver.Conn
		resets, hasValidity bool
	}{
		{"neither", nil, false, false},
		{"resetter", func(c *fakedb.RecorderConn) driver.Conn {
			return struct {
				*fakedb.RecorderConn
				resetter
			}{c, r}
		}, true, false},
		{"validator", func(c *fakedb.RecorderConn) driver.Conn {
			return struct {
				*fakedb.RecorderConn
				validator
			}{c, v}
		}, false, true},
		{"both", func(c *fakedb.RecorderConn) driver.Conn {
			return struct {
				*fakedb.RecorderConn
				resetter
				validator
			}{c, r, v}
		}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resets, valid = 0, true
			db := open(t, &fakedb.Recorder{Form: tt.form}, sqlfence.WithTable("books"))
			onConn(t, db, func(dc any) {
				if _, ok := dc.(driver.SessionResetter); ok != tt.resets {
					t.Errorf("SessionResetter: %v, want %v", ok, tt.resets)
				}
				if _, ok := dc.(driver.Validator); ok != tt.hasValidity {
					t.Errorf("Validator: %v, want %v", ok, tt.hasValidity)
				}
			})
			onConn(t, db, func(any) {}) // taken from the pool: reset
			if got := resets == 1; got != tt.resets {
				t.Errorf("the base's ResetSession was called %d times", resets)
			}
			valid = false
			onConn(t, db, func(any) {}) // put back: validated
			if dropped := db.Stats().OpenConnections == 0; dropped != tt.hasValidity {
				t.Errorf("an invalid connection was dropped: %v, want %v", dropped, tt.hasValidity)
			}
		})
	}
}

func onConn(t *testing.T, db *sql.DB, do func(dc any)) {
	t.Helper()
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Raw(func(dc any) error { do(dc); return nil }); err != nil {
		t.Fatal(err)
	}
}

// bare leaves a connection with what every driver has to have.
func bare(c *fakedb.RecorderConn) driver.Conn { return c.BareConn }

func TestBeginTx(t *testing.T) {
	serializable := &sql.TxOptions{Isolation: sql.LevelSerializable}
	readOnly := &sql.TxOptions{ReadOnly: true}
	for _, tt := range []struct {
		name string
		form func(*fakedb.RecorderConn) driver.Conn
		opts *sql.TxOptions
		sent string
		err  string // database/sql's own text
	}{
		{"default", nil, nil, "BEGIN Default", ""},
		{"serializable", nil, serializable, "BEGIN Serializable", ""},
		{"repeatable read", nil, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}, "BEGIN Repeatable Read READ ONLY", ""},
		{"read only", nil, readOnly, "BEGIN Default READ ONLY", ""},
		{"bare, default", bare, nil, "BEGIN", ""},
		{"bare, serializable", bare, serializable, "", "sql: driver does not support non-default isolation level"},
		{"bare, read only", bare, readOnly, "", "sql: driver does not support read-only transactions"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, fence := range []bool{false, true} {
				base := &fakedb.Recorder{Form: tt.form}
				db := sql.OpenDB(base)
				if fence {
					db = open(t, base, sqlfence.WithTable("books"))
				}
				tx, err := db.BeginTx(t.Context(), tt.opts)
				if tt.err != "" {
					if err == nil || err.Error() != tt.err {
						t.Errorf("fenced %v: %v, want %s", fence, err, tt.err)
					}
					base.WantSent(t)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := tx.Commit(); err != nil {
					t.Error(err)
				}
				base.WantSent(t, tt.sent, "COMMIT")
			}
		})
	}
}

// A base connection without Execer and Queryer executes statements by Prepare, as with database/sql. Its writes are
// guarded, too.
func TestBareConnection(t *testing.T) {
	const guarded = "UPDATE OR ABORT books SET price = ?, `fence` = CASE WHEN abs(max(COALESCE(CAST(`books`.`fence` AS INTEGER), 0), -9223372036854775807)) <= ?2 THEN ?2" +
		" ELSE json_extract('{}', 'sqlfence:nonce:stale:0:' || `books`.`fence`) END"
	base := &fakedb.Recorder{Form: bare}
	db := open(t, base, sqlfence.WithTable("books", fenced))
	ctx := sqlfence.WithFence(t.Context(), token("books", 7))
	var n int
	for _, do := range []func() error{
		func() error { _, err := db.ExecContext(ctx, "UPDATE books SET price = ?", 30); return err },
		func() error {
			return db.QueryRowContext(ctx, "UPDATE books SET price = ?", 30).Scan(&n)
		},
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		base.WantSent(t, guarded)
		if len(base.Args) != 2 || base.Args[0].Value != int64(30) || base.Args[1].Value != int64(7) {
			t.Errorf("arguments = %v", base.Args)
		}
	}
	if _, err := db.ExecContext(t.Context(), "UPDATE books SET price = 1"); !errors.Is(err, sqlfence.ErrNoFence) {
		t.Errorf("without a token: %v", err)
	}
	if _, err := db.ExecContext(ctx, "UPDATE others SET price = ?", sql.Named("p", 1)); err == nil {
		t.Error("a named argument was passed to a driver that has no names")
	}
	base.WantSent(t)
	base.Fails = func(string) error { return fakedb.ErrStaleAt9 }
	if _, err := db.ExecContext(ctx, "UPDATE books SET price = 1"); !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("stale: %v", err)
	}
}

// With ErrSkip a driver asks database/sql to prepare the statement. The fenced connection must return it unwrapped, and
// the statement must run once.
func TestErrSkip(t *testing.T) {
	base := &fakedb.Recorder{Form: func(c *fakedb.RecorderConn) driver.Conn { return skipper{c} }}
	var events []sqlfence.Event
	observe := sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { events = append(events, e) })
	db := open(t, base, observe, sqlfence.WithTable("books", fenced))
	ctx := sqlfence.WithFence(t.Context(), token("books", 7))
	if _, err := db.ExecContext(ctx, "DELETE FROM books"); err != nil {
		t.Fatal(err)
	}
	base.WantSent(t, "DELETE FROM books WHERE CASE WHEN abs(max(COALESCE(CAST(`books`.`fence` AS INTEGER), 0), -9223372036854775807)) <= ?1 THEN 1"+
		" ELSE json_extract('{}', 'sqlfence:nonce:stale:0:' || `books`.`fence`) IS NOT NULL END")
	var n int
	if err := db.QueryRowContext(ctx, "DELETE FROM others").Scan(&n); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	base.WantSent(t, "DELETE FROM others")
	if len(events) != 0 {
		t.Errorf("events: %v", events)
	}
}

type skipper struct{ *fakedb.RecorderConn }

func (skipper) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return nil, driver.ErrSkip
}
func (skipper) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return nil, driver.ErrSkip
}

// ErrBadConn makes database/sql retry on another connection.
func TestErrBadConnIsRetried(t *testing.T) {
	for _, prepared := range []bool{false, true} {
		failures := 0
		base := &fakedb.Recorder{Fails: func(string) error {
			if failures++; failures == 1 {
				return driver.ErrBadConn
			}
			return nil
		}}
		db := open(t, base, sqlfence.WithTable("books", fenced))
		ctx := sqlfence.WithFence(t.Context(), token("books", 7))
		const query = "UPDATE books SET price = 1"
		run := func() error { _, err := db.ExecContext(ctx, query); return err }
		if prepared {
			s, err := db.PrepareContext(ctx, query)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			run = func() error { _, err := s.ExecContext(ctx); return err }
		}
		if err := run(); err != nil || failures != 2 {
			t.Errorf("prepared %v: %v after %d calls", prepared, err, failures)
		}
	}
}

func TestConnectorIsClosed(t *testing.T) {
	base := &fakedb.Recorder{}
	db, err := sqlfence.OpenDB(base, sqlite)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil || base.Closed != 1 {
		t.Errorf("Close: %v, the connector was closed %d times", err, base.Closed)
	}
	// The connector isn't an io.Closer.
	db, err = sqlfence.OpenDB(failingConnector{io.EOF}, sqlite)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// A statement on no registered table reaches the base driver unchanged, in each way to run it.
func TestUnregisteredPassByteForByte(t *testing.T) {
	base := &fakedb.Recorder{}
	db := open(t, base, sqlfence.WithTable("books", fenced))
	for _, query := range []string{
		"UPDATE others SET price = 1",
		"  \t\nupdate Others set price=1 -- trailing\n;;",
		"SELECT 'books', \"fence\" FROM others /* books */",
		"UPDATE booksellers SET x = 'it''s books'; DELETE FROM others",
		"not even SQL ((( '",
		"",
		"UPDATE others SET x = '\xff\x00'",
	} {
		for _, run := range []func() error{
			func() error { _, err := db.ExecContext(t.Context(), query, 1, "two"); return err },
			func() error {
				rows, err := db.QueryContext(t.Context(), query, 1, "two")
				if err == nil {
					err = rows.Close()
				}
				return err
			},
			func() error {
				s, err := db.PrepareContext(t.Context(), query)
				if err == nil {
					defer s.Close()
					_, err = s.ExecContext(t.Context(), 1, "two")
				}
				return err
			},
		} {
			if err := run(); err != nil {
				t.Fatal(err)
			}
			base.WantSent(t, query)
			if len(base.Args) != 2 || base.Args[0].Value != int64(1) || base.Args[1].Value != "two" {
				t.Errorf("arguments = %v", base.Args)
			}
		}
	}
}
