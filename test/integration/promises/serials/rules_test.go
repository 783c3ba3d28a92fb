package serials_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Serial together with rules about tokens: each rule applies, and a stale token is reported before a conflict.
func TestSerialWithTokens(t *testing.T) {
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
				sh := serialShop(t, s, fence.Rule)
				holdingAt := func(token, serial int64) context.Context {
					return sqlfence.WithSerial(harness.Holding(t, token), serial)
				}
				for _, f := range s.Forms() {
					for _, w := range versionedWrites {
						w = w.As(s.Dialect)
						set := func() {
							version(t, sh, 7)
							sh.Raise(t, "books", 9)
							sh.Exec(t, "UPDATE books SET fence_token = 9")
						}
						set()
						_, err := f.Run(holdingAt(8, 6), sh.DB, w)
						harness.WantStale(t, err, 8, 9)
						if errors.Is(err, sqlfence.ErrConflict) {
							t.Error("it is a conflict, too")
						}
						_, err = f.Run(holdingAt(8, 7), sh.DB, w)
						harness.WantStale(t, err, 8, 9)
						_, err = f.Run(holdingAt(9, 6), sh.DB, w)
						harness.WantConflict(t, err, 6, 7)
						_, err = f.Run(harness.WithSerial(t, 7), sh.DB, w)
						harness.WantError(t, err, sqlfence.ErrNoFence)
						sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
						if _, err = f.Run(holdingAt(9, 7), sh.DB, w); err != nil {
							t.Error(err)
						}
						if w.Name == "update" {
							sh.WantVersions(t, "1:30#8 2:10#1 3:10#1")
							if _, err = f.Run(harness.Holding(t, 9), sh.DB, w); err != nil {
								t.Error(err)
							}
							sh.WantVersions(t, "1:30#9 2:10#1 3:10#1")
						}
						sh.Exec(t, "DELETE FROM books WHERE id = 1")
						_, err = f.Run(holdingAt(9, 9), sh.DB, w)
						harness.WantError(t, err, sqlfence.ErrGone)
						if t.Failed() {
							t.Fatalf("by %s, %s", f.Name, w.Name)
						}
					}
				}
				if s.Dialect == sqlfence.Postgres {
					version(t, sh, 7)
					sh.Raise(t, "books", 9)
					sh.Exec(t, "UPDATE books SET fence_token = 9")
					_, err := sh.DB.ExecContext(holdingAt(8, 6), harness.RowWrites[2].Literal())
					harness.WantStale(t, err, 8, 9)
				}
			})
		})
	}
}

func TestSerialWithKey(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, fence := range harness.Fences {
			sh := serialShop(t, harness.Setting{Base: b, Level: sql.LevelDefault}, fence.Rule, sqlfence.Key("id"))
			version(t, sh, 7)
			sh.Raise(t, "books/1", 4)
			sh.Raise(t, "books/2", 4)
			token := func(name string) context.Context {
				return sqlfence.WithFence(harness.WithSerial(t, 6), sqlfence.Token{Name: name, Value: 4})
			}
			for _, w := range versionedWrites {
				w = w.As(b.Dialect)
				_, err := sh.DB.ExecContext(token("books/2"), w.Query, w.Args...)
				harness.WantError(t, err, sqlfence.ErrOutOfScope)
				_, err = sh.DB.ExecContext(token("books/1"), w.Query, w.Args...)
				harness.WantConflict(t, err, 6, 7)
			}
			sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
			w := versionedWrites[0].As(b.Dialect)
			if _, err := sh.DB.ExecContext(sqlfence.WithSerial(token("books/1"), 7), w.Query, w.Args...); err != nil {
				t.Error(err)
			}
			sh.WantVersions(t, "1:30#8 2:10#1 3:10#1")
		}
	})
}

// A write without a token to an Optional table is counted and its serial compared, and the fence column keeps its
// default.
func TestSerialWithOptional(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := serialShop(t, harness.Setting{Base: b, Level: sql.LevelDefault}, sqlfence.RowFence("mark"), sqlfence.Optional())
		sh.Exec(t, "ALTER TABLE books ADD COLUMN mark bigint NOT NULL DEFAULT 0")
		version(t, sh, 7)
		for _, w := range []harness.Write{harness.RowWrites[0], harness.RowWrites[2], harness.FreshInserts[0]} {
			w = w.As(b.Dialect)
			if _, err := sh.DB.ExecContext(t.Context(), w.Query, w.Args...); err != nil {
				t.Error(err)
			}
		}
		sh.WantVersions(t, "1:30#9 2:10#1 3:10#1 7:10#1")
		_, err := sh.DB.ExecContext(harness.WithSerial(t, 8), "UPDATE books SET price = 40 WHERE id = 1")
		harness.WantConflict(t, err, 8, 9)
		_, err = sh.DB.ExecContext(harness.WithSerial(t, 8), "DELETE FROM books WHERE id = 1")
		harness.WantConflict(t, err, 8, 9)
		if _, err := sh.DB.ExecContext(sqlfence.WithFence(harness.WithSerial(t, 9), sqlfence.Token{Name: "books", Value: 3}), "UPDATE books SET price = 40 WHERE id = 1"); err != nil {
			t.Error(err)
		}
		sh.WantVersions(t, "1:40#10 2:10#1 3:10#1 7:10#1")
	})
}

func TestSerialWithSingleUse(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := serialShop(t, harness.Setting{Base: b, Level: sql.LevelDefault}, sqlfence.RowFence("fence_token"), sqlfence.SingleUse())
		version(t, sh, 7)
		ctx := sqlfence.WithSerial(harness.Holding(t, 9), 7)
		if _, err := sh.DB.ExecContext(ctx, "UPDATE books SET price = 40 WHERE id = 1"); err != nil {
			t.Error(err)
		}
		_, err := sh.DB.ExecContext(ctx, "UPDATE books SET price = 50 WHERE id = 1")
		harness.WantStale(t, err, 9, 9)
		if b.Dialect == sqlfence.Postgres {
			sh.Exec(t, "DELETE FROM books WHERE id = 1")
			_, err = sh.DB.ExecContext(ctx, harness.RowWrites[2].Literal())
			harness.WantError(t, err, sqlfence.ErrGone)
		}
	})
}

// In Observe mode nothing is refused, each would-be refusal is reported, and serials are incremented.
func TestSerialObserved(t *testing.T) {
	for _, rules := range [][]sqlfence.Rule{
		{sqlfence.Serial("serial")},
		{sqlfence.Serial("serial"), sqlfence.RowFence("fence_token")}, // the context has no token
	} {
		harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
			sh := serialShop(t, s)
			var told []error
			sh.DB = s.Fenced(t, sh.Source, harness.Books(rules...), sqlfence.WithMode(sqlfence.Observe),
				sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) {
					if e.Kind == sqlfence.WouldRefuse && !errors.Is(e.Err, sqlfence.ErrNoFence) {
						told = append(told, e.Err)
					}
				}))
			sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
				for _, tt := range []struct {
					serial int64
					harness.Write
					rows int64
					told error
					want string
				}{
					{6, harness.RowWrites[0], 1, sqlfence.ErrConflict, "1:30#7 2:10#1 3:10#1"},
					{7, harness.RowWrites[0], 1, nil, "1:30#8 2:10#1 3:10#1"},
					{6, harness.RowWrites[1], 1, sqlfence.ErrConflict, "2:10#1 3:10#1"},
					{6, harness.Write{Name: "absent", Query: "UPDATE books SET price = $1 WHERE id = $2", Args: []any{30, 99}}, 0, sqlfence.ErrGone, "1:10#7 2:10#1 3:10#1"},
					{-1, harness.RowWrites[0], 1, sqlfence.ErrInvalid, "1:30#8 2:10#1 3:10#1"},
					{6, harness.Write{Name: "own", Query: "UPDATE books SET price = $1 WHERE id = $2 AND serial = 7", Args: []any{30, 1}}, 1, sqlfence.ErrUnguardable, "1:30#8 2:10#1 3:10#1"},
				} {
					version(t, sh, 7)
					told = nil
					n, err := send(harness.WithSerial(t, tt.serial), tt.Write)
					if n != tt.rows || err != nil {
						t.Errorf("%s: %d rows, %v", tt.Name, n, err)
					}
					if tt.told == nil && len(told) > 0 || tt.told != nil && (len(told) == 0 || !errors.Is(told[0], tt.told)) {
						t.Errorf("%s at %d: told %v, want %v", tt.Name, tt.serial, told, tt.told)
					}
					sh.WantVersions(t, tt.want)
				}
			})
		})
	}
}

func TestSerialBypassed(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := serialShop(t, harness.Setting{Base: b, Level: sql.LevelDefault})
		version(t, sh, 7)
		ctx := sqlfence.Bypass(harness.WithSerial(t, 3), "a test")
		for _, query := range []string{"UPDATE books SET price = 30 WHERE id = 1", "DELETE FROM books WHERE id = 99", "INSERT INTO books VALUES (8, 'i8', 10, 0, 0, 5)"} {
			if _, err := sh.DB.ExecContext(ctx, query); err != nil {
				t.Error(err)
			}
		}
		sh.WantVersions(t, "1:30#7 2:10#1 3:10#1 8:10#5")
	})
}

// Statements whose outcome wouldn't be clear are refused, and aren't sent.
func TestSerialRefusals(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := serialShop(t, harness.Setting{Base: b, Level: sql.LevelDefault})
		db, c := b.Counted(t, sh.Source, harness.Books(sqlfence.Serial("serial")))
		version(t, sh, 7)
		exec := func(ctx context.Context, query string) error {
			_, err := db.ExecContext(ctx, query)
			return err
		}
		query := func(ctx context.Context, query string) error {
			_, err := harness.Returned(db.QueryContext(ctx, query))
			return err
		}
		prepared := func(ctx context.Context, query string) error {
			_, err := harness.Prepared(ctx, db, query, func(s *sql.Stmt) (int64, error) { return harness.Returned(s.QueryContext(ctx)) })
			return err
		}
		for _, tt := range []struct {
			send          func(context.Context, string) error
			serial        int64
			query, advice string
		}{
			{exec, -1, "UPDATE books SET price = 1 WHERE id = 1", "serial is -1"},
			{exec, -1, "DELETE FROM books WHERE id = 1", "serial is -1"},
			{query, 7, "UPDATE books SET price = 1 WHERE id = 1", "add RETURNING"},
			{query, 7, "DELETE FROM books WHERE id = 1", "add RETURNING"},
			{prepared, 7, "UPDATE books SET price = 1 WHERE id = 1", "add RETURNING"},
			{exec, 7, "UPDATE books SET serial = 9 WHERE id = 1", "leave the column out"},
			{exec, 7, "UPDATE books SET price = 1, (title, serial) = (1, 2) WHERE id = 1", "leave the column out"},
			{exec, 7, "UPDATE books SET price = 1 WHERE id = 1 AND serial = 7", "leave the column out"},
			{exec, 7, "DELETE FROM books WHERE id = 1 AND Serial = 7", "leave the column out"},
			{exec, 7, "INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET price = 1 RETURNING id", "write UPDATE"},
			{exec, 7, "INSERT INTO books VALUES (1)", "without a list of columns"},
		} {
			c.Reset()
			err := tt.send(harness.WithSerial(t, tt.serial), tt.query)
			want := sqlfence.ErrUnguardable
			if tt.serial < 0 {
				want = sqlfence.ErrInvalid
			}
			harness.WantError(t, err, want)
			if err != nil && !strings.Contains(err.Error(), tt.advice) {
				t.Errorf("%s: %v, want %q", tt.query, err, tt.advice)
			}
			if sent := c.Kinds(); len(sent) != 0 && !(len(sent) == 1 && sent[0] == "prepare") {
				t.Errorf("%s: %v were sent", tt.query, sent)
			}
		}
		if b.Dialect == sqlfence.Postgres {
			// lib/pq reports no number of rows for this statement.
			err := exec(harness.WithSerial(t, 7), "MERGE INTO books b USING pens p ON b.id = p.id WHEN MATCHED THEN DELETE")
			harness.WantError(t, err, sqlfence.ErrUnguardable)
			// The statement would add the pen and report zero changed rows.
			err = exec(harness.WithSerial(t, 7), "UPDATE books SET price = 1 WHERE id = (SELECT id FROM books WHERE id = 1 FOR UPDATE SKIP LOCKED)")
			harness.WantError(t, err, sqlfence.ErrUnguardable)
			err = exec(harness.WithSerial(t, 7), "WITH i AS (INSERT INTO pens (id) VALUES (1)) UPDATE books SET price = 1 WHERE id = 99")
			harness.WantError(t, err, sqlfence.ErrUnguardable)
		} else {
			for _, query := range []string{
				"UPDATE books SET price = 1 WHERE id = 1 RETURNING id", // mattn reports the previous count
				"UPDATE books SET price = 1 WHERE id = 1; -- which mattn takes for a statement",
				"UPDATE books SET price = 1 WHERE id = 1;;",
				"UPDATE OR IGNORE books SET isbn = 'i2' WHERE id = 1", // a constraint prevents the write
				"UPDATE books SET price = 1 WHERE id = 1 LIMIT 0",
			} {
				if !b.Returns() && strings.Contains(query, "RETURNING") {
					continue // no server accepts it
				}
				harness.WantError(t, exec(harness.WithSerial(t, 7), query), sqlfence.ErrUnguardable)
			}
		}
		sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
		// A serial has no effect in statements that have nothing to compare with it.
		for _, query := range []string{"INSERT INTO books (id) VALUES (9)", "SELECT 1 FROM books WHERE serial = 7", "UPDATE pens SET price = 1"} {
			if err := exec(harness.WithSerial(t, -1), query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
		}
	})
}

// If the serial's column doesn't exist, the error names it.
func TestSerialMissingColumn(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.Setting{Base: b, Level: sql.LevelDefault}.Shop(t, sqlfence.Serial("nowhere"))
		sh.Reset(t, 0)
		for _, ctx := range []context.Context{t.Context(), harness.WithSerial(t, 7), harness.WithSerial(t, 5)} {
			_, err := sh.DB.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1")
			if err == nil || !strings.Contains(err.Error(), "nowhere") {
				t.Errorf("err = %v, want the column's name", err)
			}
		}
		if got := sh.State(t, false); got != "1:10 2:10 3:10" {
			t.Errorf("books are %s", got)
		}
	})
}

// If a column's values can't be counted, the error is clear, and no value is lost.
func TestSerialBadColumns(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		setting := harness.Setting{Base: b, Level: sql.LevelDefault}
		contexts := []context.Context{t.Context(), harness.WithSerial(t, 7), harness.WithSerial(t, 5)}
		update := "UPDATE books SET price = 30 WHERE id = 1"
		for _, tt := range []struct{ typ, value, shown string }{
			{"text", "'it''s 7'", `it's 7`},
			{"text", "'7'", "7"},
			{"double precision", "7.5", "7.5"},
			{"bigint", "9223372036854775807", "9223372036854775807"},
		} {
			if b.Dialect == sqlfence.MySQL && tt.typ == "text" && tt.value == "'7'" {
				continue // MySQL stores a number
			}
			t.Run(tt.typ+" "+tt.value, func(t *testing.T) {
				sh := setting.Shop(t, sqlfence.Serial("serial"))
				sh.Exec(t, "ALTER TABLE books ADD COLUMN serial "+tt.typ)
				sh.Reset(t, 0)
				sh.Exec(t, "UPDATE books SET serial = "+tt.value)
				before := sh.Versions(t)
				for i, ctx := range append(contexts, harness.WithSerial(t, 1<<63-1)) {
					_, err := sh.DB.ExecContext(ctx, update)
					t.Logf("%d: %v", i, err)
					switch {
					case b.Dialect == sqlfence.Postgres && tt.typ == "double precision" && i == 0,
						b.Dialect == sqlfence.MySQL && (tt.typ == "double precision" || tt.typ == "text" && !sh.IsMariaDB(t)) && i == 0:
						sh.Exec(t, "UPDATE books SET price = 10, serial = "+tt.value) // MySQL stores a number
					case err == nil:
						t.Errorf("%d: it was updated", i)
					case b.Dialect == sqlfence.SQLite && tt.typ != "bigint":
						harness.WantError(t, err, sqlfence.ErrUnguardable)
						if !strings.Contains(err.Error(), tt.shown) {
							t.Errorf("%d: %v, want %q", i, err, tt.shown)
						}
					}
					if i > 0 { // a DELETE without a serial doesn't read it
						_, err = sh.DB.ExecContext(ctx, "DELETE FROM books WHERE id = 1")
						if err == nil && !(tt.typ == "bigint" && i == 3) {
							t.Errorf("%d: it was deleted", i)
						}
					}
				}
				if after := sh.Versions(t); after != before && tt.typ != "bigint" { // its last DELETE was permitted
					t.Errorf("books were %s, now they are %s", before, after)
				}
			})
		}
	})
}
