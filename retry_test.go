package sqlfence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// A coded error is one of lib/pq or pgx, as far as Retry can see.
type coded string

func (c coded) Error() string    { return "SQLSTATE " + string(c) }
func (c coded) SQLState() string { return string(c) }

// A numbered error is one of modernc's SQLite.
type numberedError int

func (n numberedError) Error() string { return fmt.Sprint("code ", int(n)) }
func (n numberedError) Code() int     { return int(n) }

var conflict = &sqlfence.ConflictError{Table: "books", Expected: 3, Current: 4}

func TestRetryRepeatsWhatMayPass(t *testing.T) {
	for _, test := range []struct {
		name  string
		err   error
		again bool
	}{
		{"conflict", conflict, true},
		{"wrapped", fmt.Errorf("saving: %w", conflict), true},
		{"joined", errors.Join(errors.New("other"), conflict), true},
		{"serialization failure", coded("40001"), true},
		{"deadlock", fmt.Errorf("saving: %w", coded("40P01")), true},
		{"BUSY", numberedError(5), true},
		{"LOCKED", numberedError(6), true},
		{"BUSY_SNAPSHOT", fmt.Errorf("saving: %w", numberedError(517)), true},
		{"constraint", numberedError(19), false},
		{"unique violation", coded("23505"), false},
		{"another", errors.New("another"), false},
		{"bare conflict", sqlfence.ErrConflict, false}, // refused writes return an error that wraps it
		{"stale", &sqlfence.StaleError{Table: "books"}, false},
		{"assigned", &sqlfence.ConflictError{Table: "books", Current: 4, Assigned: true}, false},
		{"no serial", sqlfence.ErrNoSerial, false},
		{"gone", sqlfence.ErrGone, false},
		{"not issued and conflict", errors.Join(conflict, sqlfence.ErrNotIssued), false},
		{"locked", &sqlfence.LockedError{Table: "books"}, false},
		{"unknown outcome by the network", errors.Join(sqlfence.ErrUnknownOutcome, os.ErrDeadlineExceeded), false},
		{"gone and conflict", errors.Join(conflict, sqlfence.ErrGone), false},
		{"locked by a serialization failure", errors.Join(sqlfence.ErrLocked, coded("40001")), false},
		{"deadline of the function's own", context.DeadlineExceeded, false}, // its Temporary returns true
		{"network", &net.DNSError{IsTemporary: true}, true},
		{"I/O timeout", os.ErrDeadlineExceeded, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := open(t, &fakedb.Recorder{})
			runs := 0
			err := sqlfence.Retry(t.Context(), db, sqlfence.RetryOptions{Attempts: 2, Backoff: 1}, func(context.Context, *sql.Tx) error {
				runs++
				return test.err
			})
			if want := map[bool]int{false: 1, true: 2}[test.again]; runs != want {
				t.Errorf("%d runs, want %d", runs, want)
			}
			if !errors.Is(err, test.err) || strings.Contains(err.Error(), "after 2 attempts") != test.again {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestRetryCommitsOnceAndRollsBackTheRest(t *testing.T) {
	f := new(fakedb.Recorder)
	db := open(t, f)
	runs := 0
	err := sqlfence.Retry(t.Context(), db, sqlfence.RetryOptions{Tx: &sql.TxOptions{Isolation: sql.LevelSerializable}, Backoff: 1}, func(context.Context, *sql.Tx) error {
		if runs++; runs < 3 {
			return conflict
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	f.WantSent(t, "BEGIN Serializable", "ROLLBACK", "BEGIN Serializable", "ROLLBACK", "BEGIN Serializable", "COMMIT")
}

// The outcome of a failed commit is known only if the database reports it.
func TestRetryOfCommit(t *testing.T) {
	for _, test := range []struct {
		err  error
		runs int
	}{
		{coded("40001"), 3}, {coded("40P01"), 3},
		{numberedError(5), 1}, {coded("08006"), 1}, {os.ErrDeadlineExceeded, 1}, {conflict, 1},
	} {
		f := &fakedb.Recorder{Fails: func(query string) error {
			if query == "COMMIT" {
				return test.err
			}
			return nil
		}}
		runs := 0
		err := sqlfence.Retry(t.Context(), open(t, f), sqlfence.RetryOptions{Attempts: 3, Backoff: 1}, func(context.Context, *sql.Tx) error {
			runs++
			return nil
		})
		if !errors.Is(err, test.err) || runs != test.runs {
			t.Errorf("commit fails with %v: %d runs, %v; want %d", test.err, runs, err, test.runs)
		}
	}
}

func TestRetryOfBegin(t *testing.T) {
	begins := 0
	f := &fakedb.Recorder{Fails: func(query string) error {
		if begins++; begins < 3 {
			return numberedError(5)
		}
		return nil
	}}
	err := sqlfence.Retry(t.Context(), open(t, f), sqlfence.RetryOptions{Backoff: 1}, func(context.Context, *sql.Tx) error { return nil })
	if err != nil || begins != 4 { // three and the commit
		t.Errorf("%d statements, %v", begins, err)
	}
}

func TestRetryRollsBackOnPanic(t *testing.T) {
	f := new(fakedb.Recorder)
	db := open(t, f)
	func() {
		defer func() {
			if recover() != "stop" {
				t.Error("the panic was swallowed")
			}
		}()
		_ = sqlfence.Retry(t.Context(), db, sqlfence.RetryOptions{}, func(context.Context, *sql.Tx) error { panic("stop") })
	}()
	f.WantSent(t, "BEGIN Default", "ROLLBACK")
}

// The pauses double from Backoff to MaxBackoff, each shortened by up to a half.
func TestRetryBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t, &fakedb.Recorder{})
		var starts []time.Time
		err := sqlfence.Retry(t.Context(), db, sqlfence.RetryOptions{}, func(context.Context, *sql.Tx) error {
			starts = append(starts, time.Now())
			return conflict
		})
		if len(starts) != 10 || !errors.Is(err, sqlfence.ErrConflict) || !strings.HasSuffix(err.Error(), "but it is 4 (after 10 attempts)") {
			t.Fatalf("%d attempts, %v; want 10 and the conflict", len(starts), err)
		}
		longest := 10 * time.Millisecond
		for i := 1; i < len(starts); i++ {
			if pause := starts[i].Sub(starts[i-1]); pause < longest/2 || pause > longest {
				t.Errorf("pause %d: %v, want %v to %v", i, pause, longest/2, longest)
			}
			longest = min(2*longest, time.Second)
		}
		db.Close()
	})
}

func TestRetryEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t, &fakedb.Recorder{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := sqlfence.Retry(ctx, db, sqlfence.RetryOptions{Backoff: time.Hour}, func(context.Context, *sql.Tx) error { return conflict })
		if !errors.Is(err, sqlfence.ErrConflict) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v, want the conflict and the end of the context", err)
		}
		runs := 0
		err = sqlfence.Retry(ctx, db, sqlfence.RetryOptions{}, func(context.Context, *sql.Tx) error { runs++; return nil })
		if !errors.Is(err, context.DeadlineExceeded) || runs > 0 {
			t.Errorf("ended before the start: %d runs, %v", runs, err)
		}
		db.Close()
	})
}

func TestRetryRefusesOptions(t *testing.T) {
	db := open(t, &fakedb.Recorder{})
	for _, opts := range []sqlfence.RetryOptions{
		{Attempts: -1}, {Backoff: -1}, {MaxBackoff: -1}, {Backoff: 2, MaxBackoff: 1},
	} {
		err := sqlfence.Retry(t.Context(), db, opts, func(context.Context, *sql.Tx) error {
			t.Error("fn was called")
			return nil
		})
		if err == nil {
			t.Errorf("%+v: no error", opts)
		}
	}
	for _, opts := range []sqlfence.RetryOptions{{Backoff: time.Hour}, {MaxBackoff: 1}, {Attempts: 1}} {
		if err := sqlfence.Retry(t.Context(), db, opts, func(context.Context, *sql.Tx) error { return nil }); err != nil {
			t.Errorf("%+v: %v", opts, err)
		}
	}
}

func ExampleRetry() {
	db, err := sqlfence.OpenDB(&fakedb.Recorder{}, sqlfence.WithDialect(sqlfence.SQLite))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	runs := 0
	err = sqlfence.Retry(context.Background(), db, sqlfence.RetryOptions{Attempts: 3}, func(ctx context.Context, tx *sql.Tx) error {
		if runs++; runs == 1 {
			return &sqlfence.ConflictError{Table: "books", Expected: 3, Current: 4} // someone else was quicker
		}
		_, err := tx.ExecContext(ctx, "UPDATE books SET price = price + 1 WHERE id = 1")
		return err
	})
	fmt.Println(runs, err)
	// Output: 2 <nil>
}
