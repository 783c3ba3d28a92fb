package drivers

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// Serial beside the rules about tokens: each does its part, and a stale token is
// told rather than a conflict.
func TestSerialWithTokens(t *testing.T) {
	for _, fence := range fences {
		t.Run(fence.name, func(t *testing.T) {
			eachSetting(t, func(t *testing.T, s setting) {
				sh := s.serialShop(t, fence.rule)
				holdingAt := func(token, serial int64) context.Context {
					return sqlfence.WithSerial(holding(t, token), serial)
				}
				for _, f := range forms {
					for _, w := range versionedWrites {
						w = w.as(s.dialect)
						set := func() {
							sh.version(t, 7)
							sh.raise(t, "books", 9)
							sh.exec(t, "UPDATE books SET fence_token = 9")
						}
						set()
						_, err := f.run(holdingAt(8, 6), sh.db, w)
						wantStale(t, err, 8, 9)
						if errors.Is(err, sqlfence.ErrConflict) {
							t.Error("it is a conflict, too")
						}
						_, err = f.run(holdingAt(8, 7), sh.db, w)
						wantStale(t, err, 8, 9)
						_, err = f.run(holdingAt(9, 6), sh.db, w)
						wantConflict(t, err, 6, 7)
						_, err = f.run(at(t, 7), sh.db, w)
						wantError(t, err, sqlfence.ErrNoFence)
						sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
						if _, err = f.run(holdingAt(9, 7), sh.db, w); err != nil {
							t.Error(err)
						}
						if w.name == "update" {
							sh.wantVersions(t, "1:30#8 2:10#1 3:10#1")
							if _, err = f.run(holding(t, 9), sh.db, w); err != nil {
								t.Error(err)
							}
							sh.wantVersions(t, "1:30#9 2:10#1 3:10#1")
						}
						sh.exec(t, "DELETE FROM books WHERE id = 1")
						_, err = f.run(holdingAt(9, 9), sh.db, w)
						wantError(t, err, sqlfence.ErrGone)
						if t.Failed() {
							t.Fatalf("by %s, %s", f.name, w.name)
						}
					}
				}
				if s.dialect == sqlfence.Postgres {
					sh.version(t, 7)
					sh.raise(t, "books", 9)
					sh.exec(t, "UPDATE books SET fence_token = 9")
					_, err := sh.db.ExecContext(holdingAt(8, 6), rowWrites[2].literal())
					wantStale(t, err, 8, 9)
				}
			})
		})
	}
}

func TestSerialWithKey(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		for _, fence := range fences {
			sh := setting{b, sql.LevelDefault}.serialShop(t, fence.rule, sqlfence.Key("id"))
			sh.version(t, 7)
			sh.raise(t, "books/1", 4)
			sh.raise(t, "books/2", 4)
			token := func(name string) context.Context {
				return sqlfence.WithFence(at(t, 6), sqlfence.Token{Name: name, Value: 4})
			}
			for _, w := range versionedWrites {
				w = w.as(b.dialect)
				_, err := sh.db.ExecContext(token("books/2"), w.query, w.args...)
				wantError(t, err, sqlfence.ErrOutOfScope)
				_, err = sh.db.ExecContext(token("books/1"), w.query, w.args...)
				wantConflict(t, err, 6, 7)
			}
			sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
			w := versionedWrites[0].as(b.dialect)
			if _, err := sh.db.ExecContext(sqlfence.WithSerial(token("books/1"), 7), w.query, w.args...); err != nil {
				t.Error(err)
			}
			sh.wantVersions(t, "1:30#8 2:10#1 3:10#1")
		}
	})
}

// Without a token an Optional table is not fenced, but counted, compared, and
// the fence column keeps its default.
func TestSerialWithOptional(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{b, sql.LevelDefault}.serialShop(t, sqlfence.RowFence("mark"), sqlfence.Optional())
		sh.exec(t, "ALTER TABLE books ADD COLUMN mark bigint NOT NULL DEFAULT 0")
		sh.version(t, 7)
		for _, w := range []write{rowWrites[0], rowWrites[2], freshInserts[0]} {
			w = w.as(b.dialect)
			if _, err := sh.db.ExecContext(t.Context(), w.query, w.args...); err != nil {
				t.Error(err)
			}
		}
		sh.wantVersions(t, "1:30#9 2:10#1 3:10#1 7:10#1")
		_, err := sh.db.ExecContext(at(t, 8), "UPDATE books SET price = 40 WHERE id = 1")
		wantConflict(t, err, 8, 9)
		_, err = sh.db.ExecContext(at(t, 8), "DELETE FROM books WHERE id = 1")
		wantConflict(t, err, 8, 9)
		if _, err := sh.db.ExecContext(sqlfence.WithFence(at(t, 9), sqlfence.Token{Name: "books", Value: 3}), "UPDATE books SET price = 40 WHERE id = 1"); err != nil {
			t.Error(err)
		}
		sh.wantVersions(t, "1:40#10 2:10#1 3:10#1 7:10#1")
	})
}

func TestSerialWithSingleUse(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{b, sql.LevelDefault}.serialShop(t, sqlfence.RowFence("fence_token"), sqlfence.SingleUse())
		sh.version(t, 7)
		ctx := sqlfence.WithSerial(holding(t, 9), 7)
		if _, err := sh.db.ExecContext(ctx, "UPDATE books SET price = 40 WHERE id = 1"); err != nil {
			t.Error(err)
		}
		_, err := sh.db.ExecContext(ctx, "UPDATE books SET price = 50 WHERE id = 1")
		wantStale(t, err, 9, 9)
		if b.dialect == sqlfence.Postgres {
			sh.exec(t, "DELETE FROM books WHERE id = 1")
			_, err = sh.db.ExecContext(ctx, rowWrites[2].literal())
			wantError(t, err, sqlfence.ErrGone)
		}
	})
}

// In Observe mode nothing is refused, everything is told, and serials are counted.
func TestSerialObserved(t *testing.T) {
	for _, rules := range [][]sqlfence.Rule{
		{sqlfence.Serial("serial")},
		{sqlfence.Serial("serial"), sqlfence.RowFence("fence_token")}, // whose token is missing
	} {
		eachSetting(t, func(t *testing.T, s setting) {
			sh := s.serialShop(t)
			var told []error
			sh.db = s.fenced(t, sh.source, books(rules...), sqlfence.WithMode(sqlfence.Observe),
				sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) {
					if e.Kind == sqlfence.WouldRefuse && !errors.Is(e.Err, sqlfence.ErrNoFence) {
						told = append(told, e.Err)
					}
				}))
			sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
				for _, tt := range []struct {
					serial int64
					write
					rows int64
					told error
					want string
				}{
					{6, rowWrites[0], 1, sqlfence.ErrConflict, "1:30#8 2:10#1 3:10#1"},
					{7, rowWrites[0], 1, nil, "1:30#8 2:10#1 3:10#1"},
					{6, rowWrites[1], 1, sqlfence.ErrConflict, "2:10#1 3:10#1"},
					{6, write{"absent", "UPDATE books SET price = $1 WHERE id = $2", []any{30, 99}}, 0, sqlfence.ErrGone, "1:10#7 2:10#1 3:10#1"},
					{-1, rowWrites[0], 1, sqlfence.ErrInvalid, "1:30#8 2:10#1 3:10#1"},
					{6, write{"own", "UPDATE books SET price = $1 WHERE id = $2 AND serial = 7", []any{30, 1}}, 1, sqlfence.ErrUnguardable, "1:30#8 2:10#1 3:10#1"},
				} {
					sh.version(t, 7)
					told = nil
					n, err := send(at(t, tt.serial), tt.write)
					if n != tt.rows || err != nil {
						t.Errorf("%s: %d rows, %v", tt.name, n, err)
					}
					if tt.told == nil && len(told) > 0 || tt.told != nil && (len(told) == 0 || !errors.Is(told[0], tt.told)) {
						t.Errorf("%s at %d: told %v, want %v", tt.name, tt.serial, told, tt.told)
					}
					sh.wantVersions(t, tt.want)
				}
			})
		})
	}
}

func TestSerialBypassed(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{b, sql.LevelDefault}.serialShop(t)
		sh.version(t, 7)
		ctx := sqlfence.Bypass(at(t, 3), "a test")
		for _, query := range []string{"UPDATE books SET price = 30 WHERE id = 1", "DELETE FROM books WHERE id = 99", "INSERT INTO books VALUES (8, 'i8', 10, 0, 0, 5)"} {
			if _, err := sh.db.ExecContext(ctx, query); err != nil {
				t.Error(err)
			}
		}
		sh.wantVersions(t, "1:30#7 2:10#1 3:10#1 8:10#5")
	})
}

// What can't have a clear answer is refused, and isn't sent.
func TestSerialRefusals(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{b, sql.LevelDefault}.serialShop(t)
		db, c := b.counted(t, sh.source, books(sqlfence.Serial("serial")))
		sh.version(t, 7)
		exec := func(ctx context.Context, query string) error {
			_, err := db.ExecContext(ctx, query)
			return err
		}
		query := func(ctx context.Context, query string) error {
			_, err := returned(db.QueryContext(ctx, query))
			return err
		}
		prepared := func(ctx context.Context, query string) error {
			_, err := prepared(ctx, db, query, func(s *sql.Stmt) (int64, error) { return returned(s.QueryContext(ctx)) })
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
			{exec, 7, "UPDATE books SET price = 1 WHERE id = 1 AND serial = 7", "leave it out"},
			{exec, 7, "DELETE FROM books WHERE id = 1 AND Serial = 7", "leave it out"},
			{exec, 7, "INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET price = 1 RETURNING id", "write UPDATE"},
			{exec, 7, "INSERT INTO books VALUES (1)", "without a list of columns"},
		} {
			c.reset()
			err := tt.send(at(t, tt.serial), tt.query)
			want := sqlfence.ErrUnguardable
			if tt.serial < 0 {
				want = sqlfence.ErrInvalid
			}
			wantError(t, err, want)
			if err != nil && !strings.Contains(err.Error(), tt.advice) {
				t.Errorf("%s: %v, want %q", tt.query, err, tt.advice)
			}
			if sent := c.kinds(); len(sent) != 0 && !(len(sent) == 1 && sent[0] == "prepare") {
				t.Errorf("%s: %v were sent", tt.query, sent)
			}
		}
		if b.dialect == sqlfence.Postgres {
			// lib/pq counts none.
			err := exec(at(t, 7), "MERGE INTO books b USING pens p ON b.id = p.id WHEN MATCHED THEN DELETE")
			wantError(t, err, sqlfence.ErrUnguardable)
			// It would add the pen and say that nothing has changed.
			err = exec(at(t, 7), "UPDATE books SET price = 1 WHERE id = (SELECT id FROM books WHERE id = 1 FOR UPDATE SKIP LOCKED)")
			wantError(t, err, sqlfence.ErrUnguardable)
			err = exec(at(t, 7), "WITH i AS (INSERT INTO pens (id) VALUES (1)) UPDATE books SET price = 1 WHERE id = 99")
			wantError(t, err, sqlfence.ErrUnguardable)
		} else {
			for _, query := range []string{
				"UPDATE books SET price = 1 WHERE id = 1 RETURNING id", // mattn counts the rows of the statement before
				"UPDATE books SET price = 1 WHERE id = 1; -- which mattn takes for a statement",
				"UPDATE books SET price = 1 WHERE id = 1;;",
				"UPDATE OR IGNORE books SET isbn = 'i2' WHERE id = 1", // which a constraint keeps from being written
				"UPDATE books SET price = 1 WHERE id = 1 LIMIT 0",
			} {
				wantError(t, exec(at(t, 7), query), sqlfence.ErrUnguardable)
			}
		}
		sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
		// Where nothing would be compared with it, a serial does nothing.
		for _, query := range []string{"INSERT INTO books (id) VALUES (9)", "SELECT 1 FROM books WHERE serial = 7", "UPDATE pens SET price = 1"} {
			if err := exec(at(t, -1), query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
		}
	})
}

// Columns that can't be counted on: the error is clear, and nothing is lost.
func TestSerialBadColumns(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		setting := setting{b, sql.LevelDefault}
		contexts := []context.Context{t.Context(), at(t, 7), at(t, 5)}
		update := "UPDATE books SET price = 30 WHERE id = 1"

		t.Run("missing", func(t *testing.T) {
			sh := setting.shop(t, sqlfence.Serial("nowhere"))
			sh.reset(t, 0)
			for _, ctx := range contexts {
				_, err := sh.db.ExecContext(ctx, update)
				if err == nil || !strings.Contains(err.Error(), "nowhere") {
					t.Errorf("err = %v, want the column's name", err)
				}
			}
			if got := sh.state(t, false); got != "1:10 2:10 3:10" {
				t.Errorf("books are %s", got)
			}
		})
		for _, tt := range []struct{ typ, value, shown string }{
			{"text", "'it''s 7'", `it's 7`},
			{"text", "'7'", "7"},
			{"double precision", "7.5", "7.5"},
			{"bigint", "9223372036854775807", "9223372036854775807"},
		} {
			t.Run(tt.typ+" "+tt.value, func(t *testing.T) {
				sh := setting.shop(t, sqlfence.Serial("serial"))
				sh.exec(t, "ALTER TABLE books ADD COLUMN serial "+tt.typ)
				sh.reset(t, 0)
				sh.exec(t, "UPDATE books SET serial = "+tt.value)
				before := sh.versions(t)
				for i, ctx := range append(contexts, at(t, 1<<63-1)) {
					_, err := sh.db.ExecContext(ctx, update)
					t.Logf("%d: %v", i, err)
					switch {
					case b.dialect == sqlfence.Postgres && tt.typ == "double precision" && i == 0:
						sh.exec(t, "UPDATE books SET price = 10, serial = 7.5")
					case err == nil:
						t.Errorf("%d: it was updated", i)
					case b.dialect == sqlfence.SQLite && tt.typ != "bigint":
						wantError(t, err, sqlfence.ErrUnguardable)
						if !strings.Contains(err.Error(), tt.shown) {
							t.Errorf("%d: %v, want %q", i, err, tt.shown)
						}
					}
					if i > 0 { // an unversioned DELETE doesn't look at it
						_, err = sh.db.ExecContext(ctx, "DELETE FROM books WHERE id = 1")
						if err == nil && !(tt.typ == "bigint" && i == 3) {
							t.Errorf("%d: it was deleted", i)
						}
					}
				}
				if after := sh.versions(t); after != before && tt.typ != "bigint" { // its last DELETE was right
					t.Errorf("books were %s, now they are %s", before, after)
				}
			})
		}
	})
}
