package serials_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// These tests check what EditLock promises, on every driver, at every level, in every form.

var editLock = sqlfence.EditLock("editedby", "editedsince", "editedexpiry")

// lockShop is a shop whose books have the columns of a lock. user is the type of the users' column.
func lockShop(t testing.TB, s harness.Setting, user string, rules ...sqlfence.Rule) *harness.Shop {
	t.Helper()
	sh := s.Shop(t, append(rules, editLock)...)
	sh.Exec(t, "ALTER TABLE books ADD COLUMN serial bigint")
	sh.Exec(t, "ALTER TABLE books ADD COLUMN editedby "+user)
	sh.Exec(t, "ALTER TABLE books ADD COLUMN editedsince "+s.TimeType())
	sh.Exec(t, "ALTER TABLE books ADD COLUMN editedexpiry "+s.TimeType())
	return sh
}

// lock resets the books and locks the first book for by, an SQL constant.
func lock(t testing.TB, s *harness.Shop, by string, since, expiry time.Time) {
	t.Helper()
	version(t, s, 7)
	s.Exec(t, fmt.Sprintf("UPDATE books SET editedby = %s, editedsince = %s, editedexpiry = %s WHERE id = 1", by, s.Time(since), s.Time(expiry)))
}

func editing(t testing.TB, user any) context.Context {
	return sqlfence.WithEditor(t.Context(), user)
}

// The database and the test use the same clock, and the times are far from now.
var (
	lockSince  = time.Now().Add(-time.Minute).UTC().Truncate(time.Millisecond)
	lockExpiry = lockSince.Add(time.Hour)
	lockLapsed = lockSince.Add(-time.Hour)
)

// wantLocked fails the test unless err is a LockedError with the holder and the times of the lock.
func wantLocked(t testing.TB, err error, by string, since time.Time) {
	t.Helper()
	var locked *sqlfence.LockedError
	if !errors.As(err, &locked) || !errors.Is(err, sqlfence.ErrLocked) {
		t.Errorf("err = %v, want ErrLocked", err)
		return
	}
	if locked.Table != "books" || locked.By != by || !locked.Since.Equal(since) || !locked.Expiry.Equal(lockExpiry) || locked.Temporary() {
		t.Errorf("%+v: want table books, by %s, since %v, expiry %v, not temporary", locked, by, since, lockExpiry)
	}
	if locked.Unwrap() == nil {
		t.Errorf("%v: the driver's own error is lost", err)
	}
}

func TestEditLockRefusesOthers(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := lockShop(t, s, "integer")
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for _, w := range harness.RowWrites {
				lock(t, sh, "42", lockSince, lockExpiry)
				for _, ctx := range []context.Context{editing(t, 43), editing(t, "7"), t.Context(), editing(t, nil)} {
					_, err := send(ctx, w)
					wantLocked(t, err, "42", lockSince)
				}
				lock(t, sh, "42", time.Time{}, lockExpiry)
				_, err := send(editing(t, 43), w)
				wantLocked(t, err, "42", time.Time{})
				sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
				if n, err := send(editing(t, 42), w); n != s.Updated(w) || err != nil {
					t.Errorf("%s by the holder: %d rows, %v", w.Name, n, err)
				}
				if t.Failed() {
					t.Fatalf("by %s", w.Name)
				}
			}
			// A statement is refused as a whole if one of its rows is locked. A locked row that it doesn't reach
			// doesn't matter.
			lock(t, sh, "42", lockSince, lockExpiry)
			_, err := send(editing(t, 43), harness.Write{Name: "", Query: "UPDATE books SET price = $1", Args: []any{30}})
			wantLocked(t, err, "42", lockSince)
			if n, err := send(editing(t, 43), harness.Write{Name: "", Query: "UPDATE books SET price = $1 WHERE id > $2", Args: []any{30, 1}}); n == 0 || err != nil {
				t.Errorf("other rows: %d rows, %v", n, err)
			}
			sh.WantVersions(t, "1:10#7 2:30#1 3:30#1")
		})
	})
}

func TestEditLockIsHeldByNobody(t *testing.T) {
	for _, tt := range []struct {
		user string
		free []string
	}{{"integer", []string{"NULL", "0"}}, {"text", []string{"NULL", "''", "'0'"}}} {
		harness.EachBase(t, func(t *testing.T, b harness.Base) {
			sh := lockShop(t, harness.Setting{Base: b, Level: sql.LevelDefault}, tt.user)
			check := func(what string) {
				for _, w := range harness.RowWrites {
					version(t, sh, 7)
					for _, ctx := range []context.Context{t.Context(), editing(t, 43), editing(t, "ann")} {
						w := w.As(b.Dialect)
						if _, err := sh.DB.ExecContext(ctx, w.Query, w.Args...); err != nil {
							t.Errorf("%s: %v", what, err)
						}
					}
				}
			}
			for _, free := range tt.free {
				lock(t, sh, free, lockSince, lockExpiry)
				check("free as " + free)
			}
			lock(t, sh, "'42'", lockSince, lockLapsed)
			check("lapsed")
			lock(t, sh, "'42'", lockSince, time.Time{})
			check("without expiry")
		})
	}
}

// A lock that never lapses still guards the row.
func TestEditLockThatNeverLapses(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := lockShop(t, harness.Setting{Base: b, Level: sql.LevelDefault}, "text")
		lock(t, sh, "'ann'", lockSince, lockExpiry)
		// The last timestamp is later than all integers of microseconds.
		never := []string{"'infinity'", "'294276-12-31 23:59:59.999999Z'"}
		if b.Dialect != sqlfence.Postgres {
			never = []string{"9223372036854775807"}
		}
		for _, expiry := range never {
			sh.Exec(t, "UPDATE books SET editedexpiry = "+expiry)
			for _, query := range []string{"UPDATE books SET price = 30 WHERE id = 1", "DELETE FROM books WHERE id = 1"} {
				_, err := sh.DB.ExecContext(editing(t, "bob"), query)
				harness.WantError(t, err, sqlfence.ErrLocked)
				t.Log(err)
			}
		}
		sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
	})
}

// Users of other types, and user names that would break out of a string.
func TestEditLockUsers(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := lockShop(t, harness.Setting{Base: b, Level: sql.LevelDefault}, "text")
		for _, user := range []string{"ann", "o'neill", `a\b`, "ann:1:2", `"ann"`, "Ann ", "42", "sqlfence:stale:0:9"} {
			lock(t, sh, "NULL", lockSince, lockExpiry)
			sh.Exec(t, "UPDATE books SET editedby = $1 WHERE id = 1", user)
			for _, query := range []string{"UPDATE books SET price = 30 WHERE id = 1", "DELETE FROM books WHERE id = 1"} {
				for _, other := range []any{"an", "ANN", " ann", "ann' OR '1'='1", 41, nil} {
					_, err := sh.DB.ExecContext(editing(t, other), query)
					wantLocked(t, err, user, lockSince)
				}
				if _, err := sh.DB.ExecContext(editing(t, user), query); err != nil {
					t.Errorf("%s: %v", user, err)
				}
			}
		}
		lock(t, sh, "'42'", lockSince, lockExpiry)
		for _, same := range []any{42, int64(42), uint8(42), []byte("42")} {
			if _, err := sh.DB.ExecContext(editing(t, same), "UPDATE books SET price = 30 WHERE id = 1"); err != nil {
				t.Errorf("%#v: %v", same, err)
			}
		}
		for _, nobody := range []any{0, "", "0", 4.2, struct{}{}} {
			_, err := sh.DB.ExecContext(editing(t, nobody), "UPDATE books SET price = 30 WHERE id = 2")
			harness.WantError(t, err, sqlfence.ErrInvalid)
		}
	})
}

// Of several reasons the error has the stale token first, then a conflict, then the lock.
func TestEditLockBesideOtherRules(t *testing.T) {
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
				sh := lockShop(t, s, "integer", fence.Rule, sqlfence.Serial("serial"))
				for _, w := range versionedWrites {
					w := w.As(s.Dialect)
					lock(t, sh, "42", lockSince, lockExpiry)
					sh.Raise(t, "books", 9)
					sh.Exec(t, "UPDATE books SET fence_token = 9")
					send := func(token, serial int64, user any) error {
						_, err := sh.DB.ExecContext(sqlfence.WithEditor(sqlfence.WithSerial(harness.Holding(t, token), serial), user), w.Query, w.Args...)
						return err
					}
					harness.WantStale(t, send(8, 6, 43), 8, 9)
					harness.WantConflict(t, send(9, 6, 43), 6, 7)
					harness.WantStale(t, send(8, 7, 43), 8, 9)
					wantLocked(t, send(9, 7, 43), "42", lockSince)
					harness.WantConflict(t, send(9, 6, 42), 6, 7)
					sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
					if err := send(9, 7, 42); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

func TestEditLockObservedAndBypassed(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := lockShop(t, s, "integer")
		lock(t, sh, "42", lockSince, lockExpiry)
		if _, err := sh.DB.ExecContext(sqlfence.Bypass(t.Context(), "rowlock"), "UPDATE books SET editedby = 43 WHERE id = 1"); err != nil {
			t.Error(err)
		}
		_, err := sh.DB.ExecContext(editing(t, 42), "UPDATE books SET price = 30 WHERE id = 1")
		wantLocked(t, err, "43", lockSince)
		var told []error
		sh.DB = s.Fenced(t, sh.Source, harness.Books(editLock), sqlfence.WithMode(sqlfence.Observe), sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { told = append(told, e.Err) }))
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for _, w := range harness.RowWrites {
				lock(t, sh, "42", lockSince, lockExpiry)
				told = nil
				if n, err := send(editing(t, 43), w); n != s.Updated(w) || err != nil {
					t.Errorf("%s: %d rows, %v", w.Name, n, err)
				}
				if len(told) != 1 || !errors.Is(told[0], sqlfence.ErrLocked) {
					t.Errorf("%s: told %v", w.Name, told)
				}
			}
		})
	})
}

// While a write waits for the row, another user locks it.
func TestEditLockWriteThatWaits(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		sh := lockShop(t, s, "integer")
		for _, w := range harness.RowWrites {
			t.Run(w.Name, func(t *testing.T) {
				lock(t, sh, "NULL", time.Time{}, time.Time{})
				b := sh.Block(t, harness.Write{})
				if _, err := b.Tx.Exec(fmt.Sprintf("UPDATE books SET editedby = 42, editedsince = %s, editedexpiry = %s WHERE id = 1", s.Time(lockSince), s.Time(lockExpiry))); err != nil {
					t.Fatal(err)
				}
				finished, ctx := make(chan struct{}), editing(t, 43)
				var err error
				go func() {
					defer close(finished)
					_, err = harness.Forms[0].Run(ctx, sh.DB, w.As(s.Dialect))
				}()
				sh.WantBlocked(t, b.PID, finished)
				if err := b.Tx.Commit(); err != nil {
					t.Fatal(err)
				}
				<-finished
				if s.Level <= sql.LevelReadCommitted || !harness.RefusedByIsolation(err) {
					wantLocked(t, err, "42", lockSince)
				}
				sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
			})
		}
	})
}

// EditLock also guards MERGE, and unusual statements.
func TestEditLockStatements(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := lockShop(t, s, "integer")
		for _, tt := range []struct {
			dialect sqlfence.Dialect // 0 for all
			query   string
		}{
			{0, "UPDATE books AS b SET price = 30 FROM books AS c WHERE b.id = c.id AND c.price = 10"},
			{0, "UPDATE books SET editedby = NULL WHERE id = 1"},
			{0, "UPDATE books SET editedexpiry = NULL, editedby = 0"},
			{0, "DELETE FROM books"},
			{0, "INSERT INTO books (id) VALUES (9), (1) ON CONFLICT (id) DO UPDATE SET price = 30 WHERE books.price = 10"},
			{sqlfence.Postgres, "WITH n AS (SELECT 1 AS id) DELETE FROM books WHERE id IN (SELECT id FROM n) AND (price = 10 OR price = 30)"},
			{sqlfence.SQLite, "WITH n AS (SELECT 1 AS id) DELETE FROM books WHERE id IN (SELECT id FROM n) AND (price = 10 OR price = 30)"},
			{sqlfence.MySQL, "UPDATE LOW_PRIORITY IGNORE books AS b SET b.price = 30 WHERE id = 1 ORDER BY id LIMIT 1"},
			{sqlfence.MySQL, "INSERT IGNORE INTO books SET id = 1 ON DUPLICATE KEY UPDATE price = VALUES(price)"},
			{sqlfence.MySQL, "INSERT INTO books (isbn, id) VALUES ('i1', 99) ON DUPLICATE KEY UPDATE editedby = NULL"},
			{sqlfence.MySQL, "DELETE QUICK IGNORE FROM books WHERE isbn = 'i1'"},
			{sqlfence.SQLite, "UPDATE OR IGNORE books SET price = 30 WHERE id = 1"},
			{sqlfence.Postgres, "WITH u AS (UPDATE books SET price = 30 RETURNING id) SELECT id FROM u"},
			{sqlfence.Postgres, "DELETE FROM books USING pens RIGHT JOIN (SELECT 1 AS book) n ON true WHERE books.id = n.book"},
			{sqlfence.Postgres, "MERGE INTO books b USING (SELECT 1 AS id) n ON b.id = n.id WHEN MATCHED THEN UPDATE SET price = 30"},
			{sqlfence.Postgres, "MERGE INTO books b USING (SELECT 1 AS id) n ON b.id = n.id WHEN MATCHED AND b.price = 10 THEN DELETE"},
			{sqlfence.Postgres, "EXPLAIN ANALYZE UPDATE books SET price = 30"},
		} {
			if tt.dialect != 0 && tt.dialect != s.Dialect || harness.Lacks(t, sh.Plain, tt.query) || !sh.Runs(t, tt.query) {
				continue
			}
			lock(t, sh, "42", lockSince, lockExpiry)
			_, err := sh.DB.ExecContext(editing(t, 43), tt.query)
			wantLocked(t, err, "42", lockSince)
			sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
			if _, err := sh.DB.ExecContext(editing(t, 42), tt.query); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Fatalf("by %s", tt.query)
			}
		}
	})
}
