package drivers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// Statements that assign the serial themselves.

// wantAssigned fails the test unless err says in full that the statement assigned
// a serial which doesn't raise the row's, current.
func wantAssigned(t testing.TB, err error, current int64) {
	t.Helper()
	var conflict *sqlfence.ConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, sqlfence.ErrConflict) {
		t.Errorf("err = %v, want ErrConflict", err)
		return
	}
	if conflict.Table != "books" || conflict.Expected != 0 || conflict.Current != current || !conflict.Assigned || conflict.Temporary() {
		t.Errorf("%+v: want table books, current %d, assigned, not temporary", conflict, current)
	}
	if conflict.Unwrap() == nil || !strings.Contains(err.Error(), "leave the column out") {
		t.Errorf("%v: want the driver's own error behind it, and what to do", err)
	}
}

func TestSerialAssignedHasToRise(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.serialShop(t)
		const all, upsert = "UPDATE books SET price = 30, serial = $1", "INSERT INTO books (id, serial) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET serial = excluded.serial, price = 30"
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, tt := range []struct {
				query  string
				serial int64
				to     int64 // 7 if it is refused
			}{
				{all + " WHERE id = 1", 8, 8},
				{all + " WHERE id = 1", math.MaxInt64, math.MaxInt64},
				{all + " WHERE id = 1", 7, 7},
				{all + " WHERE id = 1", 1, 7},
				{all + " WHERE id = 1", -8, 7},
				{all + " + 1 WHERE id = 1", 7, 8},
				{all + " + CAST(NULL AS integer) WHERE id = 1", 9, 7},
				{"UPDATE books SET (price, serial) = (30, $1) WHERE id = 1", 8, 8},
				{"UPDATE books SET (price, serial) = (30, $1) WHERE id = 1", 7, 7},
				{"UPDATE books SET (serial, price) = ($1, 30) WHERE books.id = 1", 6, 7},
				{upsert, 8, 8},
				{upsert, 7, 7},
			} {
				sh.version(t, 7)
				n, err := send(t.Context(), write{"", tt.query, []any{tt.serial}})
				if tt.to == 7 {
					wantAssigned(t, err, 7)
					sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
				} else {
					if n != 1 || err != nil {
						t.Errorf("%d rows, %v", n, err)
					}
					sh.wantVersions(t, fmt.Sprintf("1:30#%d 2:10#1 3:10#1", tt.to))
				}
				if t.Failed() {
					t.Fatalf("by %s, %d", tt.query, tt.serial)
				}
			}
			// All or nothing: one of the rows is further.
			sh.version(t, 7)
			_, err := send(t.Context(), write{"", all, []any{5}})
			wantAssigned(t, err, 7)
			sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
			// NULL counts as 0.
			sh.exec(t, "UPDATE books SET serial = NULL")
			_, err = send(t.Context(), write{"", all, []any{0}})
			wantAssigned(t, err, 0)
			if _, err := send(t.Context(), write{"", all, []any{1}}); err != nil {
				t.Error(err)
			}
			sh.wantVersions(t, "1:30#1 2:30#1 3:30#1")
		})
	})
}

// Values that are read in different ways, or have no type of their own.
func TestSerialAssignedTypes(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		types := []string{"bigint", "integer"}
		unclosed := "7" // a comment that is never closed: legal in SQLite
		if b.dialect == sqlfence.Postgres {
			unclosed = ""
			types = append(types, "smallint", "numeric")
		}
		for _, typ := range types {
			sh := setting{b, sql.LevelDefault}.shop(t, sqlfence.Serial("serial"))
			sh.exec(t, "ALTER TABLE books ADD COLUMN serial "+typ)
			for _, tt := range []struct {
				value string
				args  []any
				to    string // "7" if it is refused
			}{
				{"$1", []any{int32(8)}, "8"},
				{"$1", []any{"8"}, "8"},
				{"$1", []any{uint8(6)}, "7"},
				{"$1", []any{nil}, "7"},
				{"$1", []any{sql.NullInt64{}}, "7"},
				{"$1", []any{sql.NullInt64{Int64: 9, Valid: true}}, "9"},
				{"'8'", nil, "8"},
				{"8.0", nil, "8"},
				{"7.4", nil, "7"}, // stored as 7 in PostgreSQL
				{"-9", nil, "7"},
				{"NULL", nil, "7"},
				{"(SELECT max(id) FROM books)", nil, "7"},
				{"(SELECT max(id) + 6 FROM books)", nil, "9"},
				{"CASE WHEN price > 1 THEN 8 END", nil, "8"},
				{"CASE WHEN price > 99 THEN 8 END", nil, "7"},
				{"books.serial + 1", nil, "8"},
				{"books.serial /* + 1", nil, unclosed},
			} {
				w := write{"", "UPDATE books SET price = 30, serial = " + tt.value + " WHERE id = 1", tt.args}.as(b.dialect)
				sh.version(t, 7)
				_, err := sh.db.ExecContext(t.Context(), w.query, w.args...)
				switch tt.to {
				case "":
					wantError(t, err, sqlfence.ErrUnguardable)
				case "7":
					wantAssigned(t, err, 7)
				default:
					if err != nil {
						t.Error(err)
					}
					sh.wantVersions(t, "1:30#"+tt.to+" 2:10#1 3:10#1")
				}
				if t.Failed() {
					t.Fatalf("by %s, %v, as %s", w.query, w.args, typ)
				}
			}
			// What is no number is an error of PostgreSQL's, and in SQLite no higher one.
			sh.version(t, 7)
			for _, value := range []string{"'abc'", "x'37'"} {
				if _, err := sh.db.ExecContext(t.Context(), "UPDATE books SET serial = "+value+" WHERE id = 1"); err == nil {
					t.Errorf("%s passed", value)
				}
			}
			sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
		}
	})
}

// The value is evaluated once.
func TestSerialAssignedOnce(t *testing.T) {
	eachPostgres(t, func(t *testing.T, s setting) {
		sh := s.serialShop(t)
		sh.version(t, 7)
		sh.exec(t, "CREATE SEQUENCE versions START 100")
		for want := 100; want < 103; want++ {
			if _, err := sh.db.ExecContext(t.Context(), "UPDATE books SET price = 30, serial = nextval('versions') WHERE id = 1"); err != nil {
				t.Error(err)
			}
			sh.wantVersions(t, fmt.Sprintf("1:30#%d 2:10#1 3:10#1", want))
		}
	})
}

func TestSerialAssignedByMerge(t *testing.T) {
	eachPostgres(t, func(t *testing.T, s setting) {
		sh := s.serialShop(t)
		const merge = `MERGE INTO books b USING (VALUES (1, %d), (2, 1)) n (id, serial) ON b.id = n.id
			WHEN MATCHED AND n.id = 1 THEN UPDATE SET (price, serial) = ROW(30, n.serial) WHEN MATCHED THEN DELETE`
		for _, serial := range []int{7, 6, -1} {
			sh.version(t, 7)
			_, err := sh.db.ExecContext(t.Context(), fmt.Sprintf(merge, serial))
			wantAssigned(t, err, 7)
			sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
		}
		if _, err := sh.db.ExecContext(t.Context(), fmt.Sprintf(merge, 20)); err != nil {
			t.Error(err)
		}
		sh.wantVersions(t, "1:30#20 3:10#1")
	})
}

// What can't be compared is not sent.
func TestSerialAssignedUnseen(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{b, sql.LevelDefault}.serialShop(t)
		db, c := b.counted(t, sh.source, books(sqlfence.Serial("serial")))
		sh.version(t, 7)
		queries := []string{
			"UPDATE books SET serial = DEFAULT",
			"UPDATE books SET (price, serial) = (SELECT 1, 2)",
			"UPDATE books SET (price, serial) = ((SELECT 1, 2))",
			"UPDATE books SET (price, serial) = (VALUES (1, 2))",
			"UPDATE books SET (price, serial) = (1, 2, 3)",
			"UPDATE books SET serial = 8, serial = 1",
			"UPDATE books SET (serial, serial) = (8, 1)",
			"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET (price, serial) = (SELECT 1, 2)",
		}
		if b.dialect == sqlfence.Postgres {
			queries = append(queries,
				"UPDATE books SET serial[1] = 8",
				"UPDATE books SET (price, serial.x) = (1, 8)",
				"UPDATE books SET (price, serial) = (1, DEFAULT)",
				"UPDATE books SET (price, serial) = ROW(pens.*, 8) FROM pens",
				"UPDATE books SET (price, serial) = pens FROM pens",
				"MERGE INTO books b USING pens p ON b.id = p.id WHEN MATCHED THEN UPDATE SET serial = DEFAULT",
			)
		}
		for _, query := range queries {
			c.reset()
			_, err := db.ExecContext(t.Context(), query)
			wantError(t, err, sqlfence.ErrUnguardable)
			if err != nil && !strings.Contains(err.Error(), "leave the column out") {
				t.Errorf("%s: %v, want what to do", query, err)
			}
			if sent := c.kinds(); len(sent) != 0 {
				t.Errorf("%s: %v were sent", query, sent)
			}
		}
		sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
	})
}

// A stale token is told first, then the assignment, then the lock.
func TestSerialAssignedPrecedence(t *testing.T) {
	for _, rules := range [][]sqlfence.Rule{{sqlfence.RowFence("fence_token")}, {sqlfence.Ledger()}, {sqlfence.RowFence("fence_token"), sqlfence.Ledger()}} {
		eachSetting(t, func(t *testing.T, s setting) {
			sh := s.lockShop(t, "integer", append(rules, sqlfence.Serial("serial"))...)
			for _, query := range []string{
				"UPDATE books SET price = 30, serial = %d WHERE id = 1",
				"UPDATE books SET (serial, price) = (%d, 30) WHERE id = 1",
				"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET price = 30, serial = %d WHERE books.id = 1",
			} {
				sh.lock(t, "42", lockSince, lockExpiry)
				sh.raise(t, "books", 9)
				sh.exec(t, "UPDATE books SET fence_token = 9")
				run := func(token int64, editor, serial int) error {
					_, err := sh.db.ExecContext(sqlfence.WithEditor(holding(t, token), editor), fmt.Sprintf(query, serial))
					return err
				}
				for _, serial := range []int{7, 8} {
					for _, editor := range []int{43, 42} {
						wantStale(t, run(8, editor, serial), 8, 9)
					}
				}
				wantAssigned(t, run(9, 43, 7), 7)
				wantAssigned(t, run(9, 42, 7), 7)
				wantLocked(t, run(9, 43, 8), "42", lockSince)
				sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
				if err := run(9, 42, 8); err != nil {
					t.Error(err)
				}
				sh.wantVersions(t, "1:30#8 2:10#1 3:10#1")
				if t.Failed() {
					t.Fatalf("by %s", query)
				}
			}
		})
	}
}

// A lock keeps out an UPDATE that assigns the serial, whatever other rules say.
func TestSerialAssignedUnderALock(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		for _, rules := range [][]sqlfence.Rule{{}, {sqlfence.Key("id")}} {
			sh := setting{b, sql.LevelDefault}.lockShop(t, "integer", append(rules, sqlfence.Serial("serial"))...)
			sh.lock(t, "42", lockSince, lockExpiry)
			sh.raise(t, "books/1", 4)
			sh.raise(t, "books/2", 4)
			one := sqlfence.WithFence(editing(t, 43), sqlfence.Token{Name: "books/1", Value: 4})
			_, err := sh.db.ExecContext(one, "UPDATE books SET price = 30, serial = 8 WHERE id = 1")
			wantLocked(t, err, "42", lockSince)
			if len(rules) > 0 {
				other := sqlfence.WithFence(editing(t, 42), sqlfence.Token{Name: "books/2", Value: 4})
				_, err = sh.db.ExecContext(other, "UPDATE books SET price = 30, serial = 8 WHERE id = 1")
				wantError(t, err, sqlfence.ErrOutOfScope)
			}
			sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
			if _, err := sh.db.ExecContext(sqlfence.WithEditor(one, 42), "UPDATE books SET price = 30, serial = 8 WHERE id = 1"); err != nil {
				t.Error(err)
			}
			sh.wantVersions(t, "1:30#8 2:10#1 3:10#1")
		}
	})
}

// Retry gives up at once: the same statement would be refused for ever.
func TestSerialAssignedIsNotRetried(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{b, sql.LevelDefault}.serialShop(t)
		sh.version(t, 7)
		runs := 0
		err := sqlfence.Retry(t.Context(), sh.db, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
			runs++
			_, err := tx.ExecContext(ctx, "UPDATE books SET serial = 7 WHERE id = 1")
			return err
		})
		wantAssigned(t, err, 7)
		if runs != 1 {
			t.Errorf("it ran %d times", runs)
		}
	})
}

// Observe mode and Bypass write what the application said.
func TestSerialAssignedPasses(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.serialShop(t)
		bypassed := &shop{setting: s, source: sh.source, plain: sh.plain, db: sh.db}
		var told []error
		sh.db = s.fenced(t, sh.source, books(sqlfence.Serial("serial")), sqlfence.WithMode(sqlfence.Observe),
			sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) {
				if e.Kind == sqlfence.WouldRefuse {
					told = append(told, e.Err)
				}
			}))
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, serial := range []any{8, 7, 3} {
				told = nil
				sh.version(t, 7)
				if n, err := send(t.Context(), write{"", "UPDATE books SET price = 30, serial = $1 WHERE id = 1", []any{serial}}); n != 1 || err != nil {
					t.Errorf("%d rows, %v", n, err)
				}
				sh.wantVersions(t, fmt.Sprintf("1:30#%v 2:10#1 3:10#1", serial))
				switch {
				case serial == 8:
					if len(told) > 0 {
						t.Errorf("told %v", told)
					}
				case len(told) != 1:
					t.Errorf("told %v, want one", told)
				default:
					wantAssigned(t, told[0], 7)
				}
			}
		})
		for _, query := range []string{"UPDATE books SET price = 40, serial = 2 WHERE id = 1", "UPDATE books SET serial = DEFAULT, price = 50 WHERE id = 1"} {
			if s.dialect == sqlfence.SQLite && strings.Contains(query, "DEFAULT") {
				continue
			}
			if _, err := bypassed.db.ExecContext(sqlfence.Bypass(t.Context(), "a repair"), query); err != nil {
				t.Error(err)
			}
		}
		want := "1:40#2 2:10#1 3:10#1"
		if s.dialect == sqlfence.Postgres {
			want = "1:50#null 2:10#1 3:10#1"
		}
		sh.wantVersions(t, want)
	})
}
