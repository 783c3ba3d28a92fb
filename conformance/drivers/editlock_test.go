package drivers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// What EditLock promises, on every driver, at every level, in every form.

var editLock = sqlfence.EditLock("editedby", "editedsince", "editedexpiry")

// lockShop is a shop whose books can be locked, by users of a type.
func (s setting) lockShop(t testing.TB, user string, rules ...sqlfence.Rule) *shop {
	t.Helper()
	sh := s.shop(t, append(rules, editLock)...)
	when := "timestamptz"
	if s.dialect == sqlfence.SQLite {
		when = "integer"
	}
	sh.exec(t, "ALTER TABLE books ADD COLUMN serial bigint")
	sh.exec(t, "ALTER TABLE books ADD COLUMN editedby "+user)
	sh.exec(t, "ALTER TABLE books ADD COLUMN editedsince "+when)
	sh.exec(t, "ALTER TABLE books ADD COLUMN editedexpiry "+when)
	return sh
}

// when writes a time as the dialect stores it; NULL for the zero one.
func (s setting) when(at time.Time) string {
	switch {
	case at.IsZero():
		return "NULL"
	case s.dialect == sqlfence.SQLite:
		return fmt.Sprint(at.UnixMilli())
	}
	return "'" + at.Format(time.RFC3339Nano) + "'"
}

// lock resets the books and locks the first, by an SQL constant.
func (s *shop) lock(t testing.TB, by string, since, expiry time.Time) {
	t.Helper()
	s.version(t, 7)
	s.exec(t, fmt.Sprintf("UPDATE books SET editedby = %s, editedsince = %s, editedexpiry = %s WHERE id = 1", by, s.when(since), s.when(expiry)))
}

func editing(t testing.TB, user any) context.Context {
	return sqlfence.WithEditor(t.Context(), user)
}

// The database and the test run on one clock; the times are far apart anyway.
var (
	lockSince  = time.Now().Add(-time.Minute).UTC().Truncate(time.Millisecond)
	lockExpiry = lockSince.Add(time.Hour)
	lockLapsed = lockSince.Add(-time.Hour)
)

// wantLocked fails the test unless err says in full who holds the lock.
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
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.lockShop(t, "integer")
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, w := range rowWrites {
				sh.lock(t, "42", lockSince, lockExpiry)
				for _, ctx := range []context.Context{editing(t, 43), editing(t, "7"), t.Context(), editing(t, nil)} {
					_, err := send(ctx, w)
					wantLocked(t, err, "42", lockSince)
				}
				sh.lock(t, "42", time.Time{}, lockExpiry)
				_, err := send(editing(t, 43), w)
				wantLocked(t, err, "42", time.Time{})
				sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
				if n, err := send(editing(t, 42), w); n != 1 || err != nil {
					t.Errorf("%s by the holder: %d rows, %v", w.name, n, err)
				}
				if t.Failed() {
					t.Fatalf("by %s", w.name)
				}
			}
			// All or nothing, and a locked row that isn't reached is nobody's concern.
			sh.lock(t, "42", lockSince, lockExpiry)
			_, err := send(editing(t, 43), write{"", "UPDATE books SET price = $1", []any{30}})
			wantLocked(t, err, "42", lockSince)
			if n, err := send(editing(t, 43), write{"", "UPDATE books SET price = $1 WHERE id > $2", []any{30, 1}}); n == 0 || err != nil {
				t.Errorf("other rows: %d rows, %v", n, err)
			}
			sh.wantVersions(t, "1:10#7 2:30#1 3:30#1")
		})
	})
}

func TestEditLockIsHeldByNobody(t *testing.T) {
	for _, tt := range []struct {
		user string
		free []string
	}{{"integer", []string{"NULL", "0"}}, {"text", []string{"NULL", "''", "'0'"}}} {
		eachBase(t, func(t *testing.T, b base) {
			sh := setting{b, sql.LevelDefault}.lockShop(t, tt.user)
			check := func(what string) {
				for _, w := range rowWrites {
					sh.version(t, 7)
					for _, ctx := range []context.Context{t.Context(), editing(t, 43), editing(t, "ann")} {
						w := w.as(b.dialect)
						if _, err := sh.db.ExecContext(ctx, w.query, w.args...); err != nil {
							t.Errorf("%s: %v", what, err)
						}
					}
				}
			}
			for _, free := range tt.free {
				sh.lock(t, free, lockSince, lockExpiry)
				check("free as " + free)
			}
			sh.lock(t, "'42'", lockSince, lockLapsed)
			check("lapsed")
			sh.lock(t, "'42'", lockSince, time.Time{})
			check("without expiry")
		})
	}
}

// A lock for ever.
func TestEditLockThatNeverLapses(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{b, sql.LevelDefault}.lockShop(t, "text")
		sh.lock(t, "'ann'", lockSince, lockExpiry)
		never := "'infinity'"
		if b.dialect == sqlfence.SQLite {
			never = "9223372036854775807"
		}
		sh.exec(t, "UPDATE books SET editedexpiry = "+never)
		for _, query := range []string{"UPDATE books SET price = 30 WHERE id = 1", "DELETE FROM books WHERE id = 1"} {
			_, err := sh.db.ExecContext(editing(t, "bob"), query)
			wantError(t, err, sqlfence.ErrLocked)
			t.Log(err)
		}
		sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
	})
}

// Users of other types, and those that would break out of a text.
func TestEditLockUsers(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{b, sql.LevelDefault}.lockShop(t, "text")
		for _, user := range []string{"ann", "o'neill", `a\b`, "ann:1:2", `"ann"`, "Ann ", "42", "sqlfence:stale:0:9"} {
			sh.lock(t, "'"+strings.ReplaceAll(user, "'", "''")+"'", lockSince, lockExpiry)
			for _, query := range []string{"UPDATE books SET price = 30 WHERE id = 1", "DELETE FROM books WHERE id = 1"} {
				for _, other := range []any{"an", "ANN", " ann", "ann' OR '1'='1", 41, nil} {
					_, err := sh.db.ExecContext(editing(t, other), query)
					wantLocked(t, err, user, lockSince)
				}
				if _, err := sh.db.ExecContext(editing(t, user), query); err != nil {
					t.Errorf("%s: %v", user, err)
				}
			}
		}
		sh.lock(t, "'42'", lockSince, lockExpiry)
		for _, same := range []any{42, int64(42), uint8(42), []byte("42")} {
			if _, err := sh.db.ExecContext(editing(t, same), "UPDATE books SET price = 30 WHERE id = 1"); err != nil {
				t.Errorf("%#v: %v", same, err)
			}
		}
		for _, nobody := range []any{0, "", "0", 4.2, struct{}{}} {
			_, err := sh.db.ExecContext(editing(t, nobody), "UPDATE books SET price = 30 WHERE id = 2")
			wantError(t, err, sqlfence.ErrInvalid)
		}
	})
}

// A stale token is told first, then a conflict, then the lock.
func TestEditLockBesideOtherRules(t *testing.T) {
	for _, fence := range fences {
		t.Run(fence.name, func(t *testing.T) {
			eachSetting(t, func(t *testing.T, s setting) {
				sh := s.lockShop(t, "integer", fence.rule, sqlfence.Serial("serial"))
				for _, w := range versionedWrites {
					w := w.as(s.dialect)
					sh.lock(t, "42", lockSince, lockExpiry)
					sh.raise(t, "books", 9)
					sh.exec(t, "UPDATE books SET fence_token = 9")
					send := func(token, serial int64, user any) error {
						_, err := sh.db.ExecContext(sqlfence.WithEditor(sqlfence.WithSerial(holding(t, token), serial), user), w.query, w.args...)
						return err
					}
					wantStale(t, send(8, 6, 43), 8, 9)
					wantConflict(t, send(9, 6, 43), 6, 7)
					wantStale(t, send(8, 7, 43), 8, 9)
					wantLocked(t, send(9, 7, 43), "42", lockSince)
					wantConflict(t, send(9, 6, 42), 6, 7)
					sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
					if err := send(9, 7, 42); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

func TestEditLockObservedAndBypassed(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.lockShop(t, "integer")
		sh.lock(t, "42", lockSince, lockExpiry)
		if _, err := sh.db.ExecContext(sqlfence.Bypass(t.Context(), "rowlock"), "UPDATE books SET editedby = 43 WHERE id = 1"); err != nil {
			t.Error(err)
		}
		_, err := sh.db.ExecContext(editing(t, 42), "UPDATE books SET price = 30 WHERE id = 1")
		wantLocked(t, err, "43", lockSince)
		var told []error
		sh.db = s.fenced(t, sh.source, books(editLock), sqlfence.WithMode(sqlfence.Observe), sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { told = append(told, e.Err) }))
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, w := range rowWrites {
				sh.lock(t, "42", lockSince, lockExpiry)
				told = nil
				if n, err := send(editing(t, 43), w); n != 1 || err != nil {
					t.Errorf("%s: %d rows, %v", w.name, n, err)
				}
				if len(told) != 1 || !errors.Is(told[0], sqlfence.ErrLocked) {
					t.Errorf("%s: told %v", w.name, told)
				}
			}
		})
	})
}

// Somebody takes the lock while a write waits for the row.
func TestEditLockWriteThatWaits(t *testing.T) {
	eachPostgres(t, func(t *testing.T, s setting) {
		sh := s.lockShop(t, "integer")
		for _, w := range rowWrites {
			t.Run(w.name, func(t *testing.T) {
				sh.lock(t, "NULL", time.Time{}, time.Time{})
				b := sh.block(t, write{})
				if _, err := b.tx.Exec(fmt.Sprintf("UPDATE books SET editedby = 42, editedsince = %s, editedexpiry = %s WHERE id = 1", s.when(lockSince), s.when(lockExpiry))); err != nil {
					t.Fatal(err)
				}
				finished, ctx := make(chan struct{}), editing(t, 43)
				var err error
				go func() {
					defer close(finished)
					_, err = forms[0].run(ctx, sh.db, w)
				}()
				sh.wantBlocked(t, b.pid, finished)
				if err := b.tx.Commit(); err != nil {
					t.Fatal(err)
				}
				<-finished
				if s.level == sql.LevelReadCommitted || !refusedByIsolation(err) {
					wantLocked(t, err, "42", lockSince)
				}
				sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
			})
		}
	})
}

// MERGE, and the odd statements of both.
func TestEditLockStatements(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.lockShop(t, "integer")
		for _, tt := range []struct {
			dialect sqlfence.Dialect // 0 for both
			query   string
		}{
			{0, "UPDATE books AS b SET price = 30 FROM books AS c WHERE b.id = c.id AND c.price = 10"},
			{0, "UPDATE books SET editedby = NULL WHERE id = 1"},
			{0, "UPDATE books SET editedexpiry = NULL, editedby = 0"},
			{0, "DELETE FROM books"},
			{0, "INSERT INTO books (id) VALUES (9), (1) ON CONFLICT (id) DO UPDATE SET price = 30 WHERE books.price = 10"},
			{0, "WITH n AS (SELECT 1 AS id) DELETE FROM books WHERE id IN (SELECT id FROM n) AND (price = 10 OR price = 30)"},
			{sqlfence.SQLite, "UPDATE OR IGNORE books SET price = 30 WHERE id = 1"},
			{sqlfence.Postgres, "WITH u AS (UPDATE books SET price = 30 RETURNING id) SELECT id FROM u"},
			{sqlfence.Postgres, "DELETE FROM books USING pens RIGHT JOIN (SELECT 1 AS book) n ON true WHERE books.id = n.book"},
			{sqlfence.Postgres, "MERGE INTO books b USING (SELECT 1 AS id) n ON b.id = n.id WHEN MATCHED THEN UPDATE SET price = 30"},
			{sqlfence.Postgres, "MERGE INTO books b USING (SELECT 1 AS id) n ON b.id = n.id WHEN MATCHED AND b.price = 10 THEN DELETE"},
			{sqlfence.Postgres, "EXPLAIN ANALYZE UPDATE books SET price = 30"},
		} {
			if tt.dialect != 0 && tt.dialect != s.dialect {
				continue
			}
			sh.lock(t, "42", lockSince, lockExpiry)
			_, err := sh.db.ExecContext(editing(t, 43), tt.query)
			wantLocked(t, err, "42", lockSince)
			sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
			if _, err := sh.db.ExecContext(editing(t, 42), tt.query); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Fatalf("by %s", tt.query)
			}
		}
	})
}
