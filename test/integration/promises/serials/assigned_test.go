package serials_test

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The statements of this file assign the serial themselves.

func TestSerialAssignedHasToRise(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := serialShop(t, s)
		const all, upsert = "UPDATE books SET price = 30, serial = $1", "INSERT INTO books (id, serial) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET serial = excluded.serial, price = 30"
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for _, tt := range []struct {
				query  string
				serial int64
				to     int64 // 7 if the statement is refused
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
				version(t, sh, 7)
				w := harness.Write{Name: "", Query: tt.query, Args: []any{tt.serial}}
				if !sh.Runs(t, w.As(s.Dialect).Query, w.Args...) {
					continue
				}
				n, err := send(t.Context(), w)
				if tt.to == 7 {
					harness.WantAssigned(t, err, 7)
					sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
				} else {
					if n == 0 || err != nil {
						t.Errorf("%d rows, %v", n, err)
					}
					sh.WantVersions(t, fmt.Sprintf("1:30#%d 2:10#1 3:10#1", tt.to))
				}
				if t.Failed() {
					t.Fatalf("by %s, %d", tt.query, tt.serial)
				}
			}
			// One of the rows has a higher serial, so no row is written.
			version(t, sh, 7)
			_, err := send(t.Context(), harness.Write{Name: "", Query: all, Args: []any{5}})
			harness.WantAssigned(t, err, 7)
			sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
			// A serial that is NULL counts as 0.
			sh.Exec(t, "UPDATE books SET serial = NULL")
			_, err = send(t.Context(), harness.Write{Name: "", Query: all, Args: []any{0}})
			harness.WantAssigned(t, err, 0)
			if _, err := send(t.Context(), harness.Write{Name: "", Query: all, Args: []any{1}}); err != nil {
				t.Error(err)
			}
			sh.WantVersions(t, "1:30#1 2:30#1 3:30#1")
		})
	})
}

// Assigned values of several types, and values without a type.
func TestSerialAssignedTypes(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		types := []string{"bigint", "integer"}
		unclosed := "7" // a comment that is never closed: legal in SQLite
		if b.Dialect != sqlfence.SQLite {
			unclosed = ""
		}
		if b.Dialect == sqlfence.Postgres {
			types = append(types, "smallint", "numeric")
		}
		for _, typ := range types {
			sh := harness.Setting{Base: b, Level: sql.LevelDefault}.Shop(t, sqlfence.Serial("serial"))
			sh.Exec(t, "ALTER TABLE books ADD COLUMN serial "+typ)
			for _, tt := range []struct {
				value string
				args  []any
				to    string // "7" if the statement is refused
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
				w := harness.Write{Name: "", Query: "UPDATE books SET price = 30, serial = " + tt.value + " WHERE id = 1", Args: tt.args}.As(b.Dialect)
				version(t, sh, 7)
				_, err := sh.DB.ExecContext(t.Context(), w.Query, w.Args...)
				if b.Dialect == sqlfence.MySQL && err != nil && strings.Contains(err.Error(), "Error 1093") {
					continue // unlike MariaDB, MySQL can't read the updated table
				}
				switch tt.to {
				case "":
					harness.WantError(t, err, sqlfence.ErrUnguardable)
				case "7":
					harness.WantAssigned(t, err, 7)
				default:
					if err != nil {
						t.Error(err)
					}
					sh.WantVersions(t, "1:30#"+tt.to+" 2:10#1 3:10#1")
				}
				if t.Failed() {
					t.Fatalf("by %s, %v, as %s", w.Query, w.Args, typ)
				}
			}
			// A value that isn't a number is an error in PostgreSQL. In SQLite it isn't higher than the row's serial.
			version(t, sh, 7)
			for _, value := range []string{"'abc'", "x'37'"} {
				if _, err := sh.DB.ExecContext(t.Context(), "UPDATE books SET serial = "+value+" WHERE id = 1"); err == nil {
					t.Errorf("%s passed", value)
				}
			}
			sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
		}
	})
}

// The assigned value is evaluated once.
func TestSerialAssignedOnce(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		sh := serialShop(t, s)
		version(t, sh, 7)
		sh.Exec(t, "CREATE SEQUENCE versions START 100")
		for want := 100; want < 103; want++ {
			if _, err := sh.DB.ExecContext(t.Context(), "UPDATE books SET price = 30, serial = nextval('versions') WHERE id = 1"); err != nil {
				t.Error(err)
			}
			sh.WantVersions(t, fmt.Sprintf("1:30#%d 2:10#1 3:10#1", want))
		}
	})
}

func TestSerialAssignedByMerge(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		sh := serialShop(t, s)
		if harness.Lacks(t, sh.Plain, "MERGE INTO") {
			t.Skip("the server has no MERGE")
		}
		const merge = `MERGE INTO books b USING (VALUES (1, %d), (2, 1)) n (id, serial) ON b.id = n.id
			WHEN MATCHED AND n.id = 1 THEN UPDATE SET (price, serial) = ROW(30, n.serial) WHEN MATCHED THEN DELETE`
		for _, serial := range []int{7, 6, -1} {
			version(t, sh, 7)
			_, err := sh.DB.ExecContext(t.Context(), fmt.Sprintf(merge, serial))
			harness.WantAssigned(t, err, 7)
			sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
		}
		if _, err := sh.DB.ExecContext(t.Context(), fmt.Sprintf(merge, 20)); err != nil {
			t.Error(err)
		}
		sh.WantVersions(t, "1:30#20 3:10#1")
	})
}

// If the guard can't see the assigned value, the statement isn't sent.
func TestSerialAssignedUnseen(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := serialShop(t, harness.Setting{Base: b, Level: sql.LevelDefault})
		db, c := b.Counted(t, sh.Source, harness.Books(sqlfence.Serial("serial")))
		version(t, sh, 7)
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
		if b.Dialect == sqlfence.Postgres {
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
			c.Reset()
			_, err := db.ExecContext(t.Context(), query)
			harness.WantError(t, err, sqlfence.ErrUnguardable)
			if err != nil && !strings.Contains(err.Error(), "leave the column out") {
				t.Errorf("%s: %v, want what to do", query, err)
			}
			if sent := c.Kinds(); len(sent) != 0 {
				t.Errorf("%s: %v were sent", query, sent)
			}
		}
		sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
	})
}

// Of several reasons the error has the stale token first, then the assigned serial, then the lock.
func TestSerialAssignedPrecedence(t *testing.T) {
	for _, rules := range [][]sqlfence.Rule{{sqlfence.RowFence("fence_token")}, {sqlfence.Ledger()}, {sqlfence.RowFence("fence_token"), sqlfence.Ledger()}} {
		harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
			sh := lockShop(t, s, "integer", append(rules, sqlfence.Serial("serial"))...)
			for _, query := range []string{
				"UPDATE books SET price = 30, serial = %d WHERE id = 1",
				"UPDATE books SET (serial, price) = (%d, 30) WHERE id = 1",
				"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET price = 30, serial = %d WHERE books.id = 1",
			} {
				if !sh.Runs(t, fmt.Sprintf(query, 1)) {
					continue
				}
				lock(t, sh, "42", lockSince, lockExpiry)
				sh.Raise(t, "books", 9)
				sh.Exec(t, "UPDATE books SET fence_token = 9")
				run := func(token int64, editor, serial int) error {
					_, err := sh.DB.ExecContext(sqlfence.WithEditor(harness.Holding(t, token), editor), fmt.Sprintf(query, serial))
					return err
				}
				for _, serial := range []int{7, 8} {
					for _, editor := range []int{43, 42} {
						harness.WantStale(t, run(8, editor, serial), 8, 9)
					}
				}
				if err := run(9, 43, 7); s.Dialect == sqlfence.MySQL { // MySQL checks the row before it assigns
					wantLocked(t, err, "42", lockSince)
				} else {
					harness.WantAssigned(t, err, 7)
				}
				harness.WantAssigned(t, run(9, 42, 7), 7)
				wantLocked(t, run(9, 43, 8), "42", lockSince)
				sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
				if err := run(9, 42, 8); err != nil {
					t.Error(err)
				}
				sh.WantVersions(t, "1:30#8 2:10#1 3:10#1")
				if t.Failed() {
					t.Fatalf("by %s", query)
				}
			}
		})
	}
}

// A lock refuses an UPDATE that assigns the serial, under every combination of other rules.
func TestSerialAssignedUnderALock(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, rules := range [][]sqlfence.Rule{{}, {sqlfence.Key("id")}} {
			sh := lockShop(t, harness.Setting{Base: b, Level: sql.LevelDefault}, "integer", append(rules, sqlfence.Serial("serial"))...)
			lock(t, sh, "42", lockSince, lockExpiry)
			sh.Raise(t, "books/1", 4)
			sh.Raise(t, "books/2", 4)
			one := sqlfence.WithFence(editing(t, 43), sqlfence.Token{Name: "books/1", Value: 4})
			_, err := sh.DB.ExecContext(one, "UPDATE books SET price = 30, serial = 8 WHERE id = 1")
			wantLocked(t, err, "42", lockSince)
			if len(rules) > 0 {
				other := sqlfence.WithFence(editing(t, 42), sqlfence.Token{Name: "books/2", Value: 4})
				_, err = sh.DB.ExecContext(other, "UPDATE books SET price = 30, serial = 8 WHERE id = 1")
				harness.WantError(t, err, sqlfence.ErrOutOfScope)
			}
			sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
			if _, err := sh.DB.ExecContext(sqlfence.WithEditor(one, 42), "UPDATE books SET price = 30, serial = 8 WHERE id = 1"); err != nil {
				t.Error(err)
			}
			sh.WantVersions(t, "1:30#8 2:10#1 3:10#1")
		}
	})
}

// Retry gives up at once, because the same statement would be refused again.
func TestSerialAssignedIsNotRetried(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := serialShop(t, harness.Setting{Base: b, Level: sql.LevelDefault})
		version(t, sh, 7)
		runs := 0
		err := sqlfence.Retry(t.Context(), sh.DB, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
			runs++
			_, err := tx.ExecContext(ctx, "UPDATE books SET serial = 7 WHERE id = 1")
			return err
		})
		harness.WantAssigned(t, err, 7)
		if runs != 1 {
			t.Errorf("it ran %d times", runs)
		}
	})
}

// Under Observe mode and Bypass the serial that the application assigns is stored.
func TestSerialAssignedPasses(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := serialShop(t, s)
		bypassed := &harness.Shop{Setting: s, Source: sh.Source, Plain: sh.Plain, DB: sh.DB}
		var told []error
		sh.DB = s.Fenced(t, sh.Source, harness.Books(sqlfence.Serial("serial")), sqlfence.WithMode(sqlfence.Observe),
			sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) {
				if e.Kind == sqlfence.WouldRefuse {
					told = append(told, e.Err)
				}
			}))
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for _, serial := range []any{8, 7, 3} {
				told = nil
				version(t, sh, 7)
				if n, err := send(t.Context(), harness.Write{Name: "", Query: "UPDATE books SET price = 30, serial = $1 WHERE id = 1", Args: []any{serial}}); n != 1 || err != nil {
					t.Errorf("%d rows, %v", n, err)
				}
				sh.WantVersions(t, fmt.Sprintf("1:30#%v 2:10#1 3:10#1", serial))
				switch {
				case serial == 8:
					if len(told) > 0 {
						t.Errorf("told %v", told)
					}
				case len(told) != 1:
					t.Errorf("told %v, want one", told)
				default:
					harness.WantAssigned(t, told[0], 7)
				}
			}
		})
		for _, query := range []string{"UPDATE books SET price = 40, serial = 2 WHERE id = 1", "UPDATE books SET serial = DEFAULT, price = 50 WHERE id = 1"} {
			if s.Dialect == sqlfence.SQLite && strings.Contains(query, "DEFAULT") {
				continue
			}
			if _, err := bypassed.DB.ExecContext(sqlfence.Bypass(t.Context(), "a repair"), query); err != nil {
				t.Error(err)
			}
		}
		want := "1:40#2 2:10#1 3:10#1"
		if s.Dialect != sqlfence.SQLite {
			want = "1:50#null 2:10#1 3:10#1"
		}
		sh.WantVersions(t, want)
	})
}
