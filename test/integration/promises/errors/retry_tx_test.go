package errors_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// counting wraps a function for Retry, and counts its runs.
func counting(runs *int, fn func(context.Context, *sql.Tx) error) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		*runs++
		return fn(ctx, tx)
	}
}

// Retry recognises each driver's error for a transaction that came second, and the second run succeeds.
func TestRetryAfterSerializationFailure(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		if s.Level == sql.LevelReadCommitted {
			t.Skip("refuses nothing")
		}
		if !s.RefusesChanged() {
			t.Skip("the write goes to the newest version of the row, or waits for the lock of who reads it")
		}
		sh := s.Shop(t)
		sh.Reset(t, 1)
		var runs int
		opts := sqlfence.RetryOptions{Tx: &sql.TxOptions{Isolation: s.Level}}
		err := sqlfence.Retry(harness.Holding(t, 1), sh.DB, opts, counting(&runs, func(ctx context.Context, tx *sql.Tx) error {
			var price int
			if err := tx.QueryRowContext(ctx, "SELECT price FROM books WHERE id = 1").Scan(&price); err != nil {
				return err
			}
			if runs == 1 { // another writer comes in between
				sh.Exec(t, "UPDATE books SET price = price + 5 WHERE id = 1")
			}
			// In SQLite this is BUSY_SNAPSHOT, in PostgreSQL 40001.
			_, err := tx.ExecContext(ctx, "UPDATE books SET price = $1 WHERE id = 1", price+1)
			return err
		}))
		if err != nil || runs != 2 {
			t.Errorf("%d runs, %v; want 2", runs, err)
		}
		if state := sh.State(t, false); !strings.HasPrefix(state, "1:16 ") {
			t.Errorf("books are %s: an update was lost", state)
		}
	})
}

// Only the commit reports this failure: at SERIALIZABLE two transactions read the rows that the other one writes.
func TestRetryAfterFailedCommit(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		if s.Level != sql.LevelSerializable {
			t.Skip("allows it")
		}
		sh := s.Shop(t)
		sh.Exec(t, "INSERT INTO pens VALUES (1, 1), (2, 1)")
		opts := &sql.TxOptions{Isolation: s.Level}
		var runs int
		err := sqlfence.Retry(t.Context(), sh.DB, sqlfence.RetryOptions{Tx: opts}, counting(&runs, func(ctx context.Context, tx *sql.Tx) error {
			var sum int
			if err := tx.QueryRowContext(ctx, "SELECT sum(price) FROM pens").Scan(&sum); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "UPDATE pens SET price = $1 WHERE id = 1", sum); err != nil || runs > 1 {
				return err
			}
			other, err := sh.Plain.BeginTx(ctx, opts)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Rollback()
			if err := other.QueryRow("SELECT sum(price) FROM pens").Scan(&sum); err != nil {
				t.Fatal(err)
			}
			if _, err := other.Exec("UPDATE pens SET price = $1 WHERE id = 2", sum); err != nil {
				t.Fatal(err)
			}
			return other.Commit()
		}))
		if err != nil || runs != 2 {
			t.Errorf("%d runs, %v; want 2", runs, err)
		}
	})
}

// If two transactions deadlock, PostgreSQL ends one of them. Retry runs it again, and it succeeds.
func TestRetryAfterDeadlock(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		if s.Level != sql.LevelReadCommitted {
			t.Skip("nothing else, and PostgreSQL takes a second to see a deadlock")
		}
		sh := s.Shop(t)
		sh.Exec(t, "INSERT INTO pens VALUES (1, 0), (2, 0)")
		var both sync.WaitGroup
		both.Add(2)
		var wg sync.WaitGroup
		var runs [2]int
		for i, order := range [][]int{{1, 2}, {2, 1}} {
			wg.Go(func() {
				err := sqlfence.Retry(t.Context(), sh.DB, sqlfence.RetryOptions{Tx: &sql.TxOptions{Isolation: s.Level}}, counting(&runs[i], func(ctx context.Context, tx *sql.Tx) error {
					const update = "UPDATE pens SET price = price + 1 WHERE id = $1"
					if _, err := tx.ExecContext(ctx, update, order[0]); err != nil {
						return err
					}
					if runs[i] == 1 {
						both.Done()
						both.Wait() // both transactions hold what the other needs
					}
					_, err := tx.ExecContext(ctx, update, order[1])
					return err
				}))
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		var sum int
		if err := sh.Plain.QueryRow("SELECT sum(price) FROM pens").Scan(&sum); err != nil || sum != 4 || runs[0]+runs[1] < 3 {
			t.Errorf("sum %d, %v, after %v runs; want 4, after 3 or more", sum, err, runs)
		}
	})
}

// Further errors of SQLite for a file that another connection uses.
func TestRetryAfterBusy(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("has no such error")
		}
		dsn := harness.Impatient(b.DSN(t))
		db := b.Raw(t, dsn)
		harness.MustExec(t, db, "CREATE TABLE pens (id integer PRIMARY KEY, price integer)")
		writer, err := b.Raw(t, dsn).Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer writer.Rollback()
		if _, err := writer.Exec("INSERT INTO pens VALUES (1, 1)"); err != nil {
			t.Fatal(err)
		}
		var runs int
		err = sqlfence.Retry(t.Context(), db, sqlfence.RetryOptions{}, counting(&runs, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO pens VALUES (2, 1)")
			if runs == 1 {
				if err == nil {
					t.Error("wrote beside another writer")
				}
				if err := writer.Commit(); err != nil {
					t.Error(err)
				}
			}
			return err
		}))
		if err != nil || runs != 2 {
			t.Errorf("%d runs, %v; want 2", runs, err)
		}
	})
}

// A permanent error is returned at once, unchanged.
func TestRetryDoesNotRepeatTheRest(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t)
		sh.Reset(t, 9)
		for name, test := range map[string]struct {
			ctx   context.Context
			query string
			want  error // nil: the driver's own
		}{
			"stale":      {harness.Holding(t, 8), "UPDATE books SET price = 1 WHERE id = 1", sqlfence.ErrStale},
			"no token":   {t.Context(), "UPDATE books SET price = 1 WHERE id = 1", sqlfence.ErrNoFence},
			"constraint": {harness.Holding(t, 9), "INSERT INTO books (id, isbn) VALUES (1, 'i9')", nil},
			"syntax":     {t.Context(), "SELEKT", nil},
		} {
			var runs int
			err := sqlfence.Retry(test.ctx, sh.DB, sqlfence.RetryOptions{Tx: &sql.TxOptions{Isolation: s.Level}}, counting(&runs, func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, test.query)
				return err
			}))
			if err == nil || test.want != nil && !errors.Is(err, test.want) || runs != 1 {
				t.Errorf("%s: %d runs, %v", name, runs, err)
			}
		}
		if state := sh.State(t, true); state != "1:10@9 2:10@9 3:10@9" {
			t.Errorf("books are %s", state)
		}
	})
}
