package core_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// errSaid is an error of pgx that marks a statement as unsent.
type errSaid struct{ error }

func (errSaid) SafeToRetry() bool { return true }
func (e errSaid) Unwrap() error   { return e.error }

var errReset = &net.OpError{Op: "read", Err: syscall.ECONNRESET}

// sentErrors are the errors that a PostgreSQL driver may return for a sent statement.
var sentErrors = []struct {
	name    string
	err     error
	unknown bool
}{
	{"bad connection", driver.ErrBadConn, true},
	{"bad connection, wrapped", fmt.Errorf("exec: %w", driver.ErrBadConn), true},
	{"cancelled", context.Canceled, true},
	{"deadline", fmt.Errorf("timeout: %w", context.DeadlineExceeded), true},
	{"end of file", io.ErrUnexpectedEOF, true},
	{"reset", errReset, true},
	{"session ended", coded("57P01"), true},
	{"connection failure", coded("08006"), true},
	{"protocol violation", coded("08P01"), false},
	{"completion unknown", coded("40003"), true},
	{"cancelled before it was sent", errSaid{context.Canceled}, false},
	{"nothing written", errSaid{errReset}, false},
	{"cancelled by the server", coded("57014"), false},
	{"serialization failure", coded("40001"), false},
	{"constraint", coded("23505"), false},
	{"the driver's own", errors.New("can't encode the argument"), false},
}

// wantOutcome checks an error of a guarded write or commit.
func wantOutcome(t *testing.T, err, base error, unknown, resent bool) {
	t.Helper()
	if errors.Is(err, sqlfence.ErrUnknownOutcome) != unknown {
		t.Errorf("err = %v, want unknown: %v", err, unknown)
	}
	if hidden := unknown && resent && errors.Is(base, driver.ErrBadConn); errors.Is(err, driver.ErrBadConn) == hidden && hidden {
		t.Errorf("%v: database/sql would send it again", err)
	} else if !hidden && !errors.Is(err, base) {
		t.Errorf("%v: the base driver's error isn't found", err)
	}
	var network net.Error
	if errors.As(base, &network) && !errors.As(err, &network) {
		t.Errorf("%v: the network's error isn't found", err)
	}
	if !strings.Contains(err.Error(), base.Error()) {
		t.Errorf("%v: the reason %v isn't said", err, base)
	}
}

// outcomeWays send a guarded write that fails with the base driver's error.
var outcomeWays = map[string]func(ctx context.Context, db *sql.DB) error{
	"exec":  func(ctx context.Context, db *sql.DB) error { _, err := db.ExecContext(ctx, outcomeWrite); return err },
	"query": func(ctx context.Context, db *sql.DB) error { _, err := db.QueryContext(ctx, outcomeWrite); return err },
	"prepared": func(ctx context.Context, db *sql.DB) error {
		s, err := db.PrepareContext(ctx, outcomeWrite)
		if err != nil {
			return err
		}
		defer s.Close()
		_, err = s.ExecContext(ctx)
		return err
	},
}

const outcomeWrite = "UPDATE books SET price = 1"

// A guarded write that may have been applied is sent once, and its outcome is unknown.
func TestOutcomeOfWrite(t *testing.T) {
	for _, tt := range sentErrors {
		for name, way := range outcomeWays {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				sent := 0
				base := &fakedb.Recorder{Fails: func(string) error { sent++; return tt.err }}
				err := way(with(t.Context(), 7), openPostgres(t, base, sqlfence.WithTable("books", fenced)))
				wantOutcome(t, err, tt.err, tt.unknown, true)
				if sent != 1 {
					t.Errorf("sent %d times", sent)
				}
			})
		}
	}
}

// An error instead of a row also leaves the outcome unknown, even of the first row, which is read ahead.
func TestOutcomeOfRows(t *testing.T) {
	for _, tt := range sentErrors {
		for _, rule := range []sqlfence.Option{sqlfence.WithTable("books", fenced), serialRule} {
			base := &fakedb.Recorder{FailsNext: tt.err}
			db := openPostgres(t, base, rule)
			ctx := sqlfence.WithSerial(with(t.Context(), 7), 3)
			rows, err := db.QueryContext(ctx, serialUpdate+" RETURNING id")
			if err != nil {
				t.Fatal(err)
			}
			if rows.Next() {
				t.Error("a row was given out")
			}
			wantOutcome(t, rows.Err(), tt.err, tt.unknown, true)
			_ = rows.Close()
		}
	}
}

// The commit of a transaction with guarded statements is sent once, and an error may leave its outcome unknown. Errors
// inside of the transaction, and of other transactions, are the base driver's.
func TestOutcomeOfCommit(t *testing.T) {
	for _, tt := range sentErrors {
		for _, query := range []string{outcomeWrite, "UPDATE others SET price = 1", ""} {
			t.Run(tt.name+"/"+query, func(t *testing.T) {
				base := &fakedb.Recorder{Fails: func(sent string) error {
					if sent == "COMMIT" {
						return tt.err
					}
					return nil
				}}
				tx, err := openPostgres(t, base, sqlfence.WithTable("books", fenced)).Begin()
				if err != nil {
					t.Fatal(err)
				}
				if query != "" {
					if _, err := tx.ExecContext(with(t.Context(), 7), query); err != nil {
						t.Fatal(err)
					}
				}
				wantOutcome(t, tx.Commit(), tt.err, tt.unknown && query == outcomeWrite, false)
			})
		}
	}
}

// A statement that is unguarded, in a transaction, or in Observe mode keeps the base driver's error, and database/sql
// retries it on driver.ErrBadConn.
func TestOutcomeIsTheDriversElsewhere(t *testing.T) {
	for _, tt := range sentErrors {
		base := &fakedb.Recorder{Fails: func(sent string) error {
			if strings.HasPrefix(sent, "UPDATE") {
				return tt.err
			}
			return nil
		}}
		db := openPostgres(t, base, sqlfence.WithTable("books", fenced))
		observing := openPostgres(t, base, append(observeMode, sqlfence.WithTable("books", fenced))...)
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		for name, send := range map[string]func() error{
			"unregistered":   func() error { _, err := db.Exec("UPDATE others SET price = 1"); return err },
			"bypassed":       func() error { _, err := db.ExecContext(sqlfence.Bypass(t.Context(), "test"), outcomeWrite); return err },
			"in transaction": func() error { _, err := tx.ExecContext(with(t.Context(), 7), outcomeWrite); return err },
			"observed":       func() error { _, err := observing.ExecContext(with(t.Context(), 7), outcomeWrite); return err },
		} {
			if err := send(); !errors.Is(err, tt.err) || errors.Is(err, sqlfence.ErrUnknownOutcome) {
				t.Errorf("%s, %s: %v", name, tt.name, err)
			}
		}
		_ = tx.Rollback()
	}
}

// With a context that has ended nothing is sent.
func TestOutcomeOfAnEndedContext(t *testing.T) {
	base, link := new(fakedb.Recorder), new(fakeLink)
	ctx, cancel := context.WithCancel(with(t.Context(), 7))
	db := link.linked(t, base, cancel) // database/sql's own check has passed by then
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	_, err := db.ExecContext(ctx, outcomeWrite)
	wantOutcome(t, err, context.Canceled, false, true)
	base.WantSent(t)

	conn, err := wrapped(t, base).Open("")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(with(t.Context(), 7))
	tx, err := conn.(driver.ConnBeginTx).BeginTx(ctx, driver.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.(driver.ExecerContext).ExecContext(ctx, outcomeWrite, nil); err != nil {
		t.Fatal(err)
	}
	cancel()
	wantOutcome(t, tx.Commit(), context.Canceled, false, false)
	if base.Sent[0] != "BEGIN Default" || base.Sent[len(base.Sent)-1] != "ROLLBACK" || slices.Contains(base.Sent, "COMMIT") {
		t.Errorf("sent %q", base.Sent)
	}
}

func wrapped(t *testing.T, base *fakedb.Recorder) driver.Driver {
	t.Helper()
	d, err := sqlfence.WrapDriver(base, sqlfence.WithDialect(sqlfence.Postgres), sqlfence.WithTable("books", fenced))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// inTx runs a guarded statement in a transaction, then do, and commits.
func inTx(t *testing.T, db *sql.DB, do func()) error {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(with(t.Context(), 7), outcomeWrite); err != nil {
		t.Fatal(err)
	}
	do()
	return tx.Commit()
}

// A timeoutError is what some drivers of SQLite return for a busy file.
type timeoutError struct{}

func (timeoutError) Error() string   { return "busy" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// On a database without a network a timeout is no network error.
func TestOutcomeOfATimeoutInSQLite(t *testing.T) {
	base := &fakedb.Recorder{Fails: func(string) error { return timeoutError{} }}
	_, err := open(t, base, sqlfence.WithTable("books", fenced)).ExecContext(with(t.Context(), 7), outcomeWrite)
	wantOutcome(t, err, timeoutError{}, false, true)
}
