package drivers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// What Serial and WithSerial promise, on every driver, at every level, in every
// form of sending a statement.

// serialShop is a shop whose books have versions.
func (s setting) serialShop(t testing.TB, rules ...sqlfence.Rule) *shop {
	t.Helper()
	sh := s.shop(t, append(rules, sqlfence.Serial("serial"))...)
	sh.exec(t, "ALTER TABLE books ADD COLUMN serial bigint")
	return sh
}

// version leaves the books 1, 2 and 3, the first at a serial and the others at 1.
func (s *shop) version(t testing.TB, serial int64) {
	t.Helper()
	s.reset(t, 0)
	s.exec(t, "UPDATE books SET serial = 1")
	s.exec(t, "UPDATE books SET serial = $1 WHERE id = 1", serial)
}

// versions tells the books as "id:price#serial".
func (s *shop) versions(t testing.TB) string {
	t.Helper()
	rows, err := s.plain.QueryContext(t.Context(), "SELECT id, price, COALESCE(CAST(serial AS text), 'null') FROM books ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var id, price int64
		var serial string
		if err := rows.Scan(&id, &price, &serial); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%d:%d#%s", id, price, serial))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func (s *shop) wantVersions(t testing.TB, want string) {
	t.Helper()
	if got := s.versions(t); got != want {
		t.Errorf("books are %s, want %s", got, want)
	}
}

func at(t testing.TB, serial int64) context.Context {
	return sqlfence.WithSerial(t.Context(), serial)
}

// wantConflict fails the test unless err says in full which versions differ.
func wantConflict(t testing.TB, err error, expected, current int64) {
	t.Helper()
	var conflict *sqlfence.ConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, sqlfence.ErrConflict) {
		t.Errorf("err = %v, want ErrConflict", err)
		return
	}
	if conflict.Table != "books" || conflict.Expected != expected || conflict.Current != current || !conflict.Temporary() {
		t.Errorf("%v: want table books, expected %d, current %d, temporary", err, expected, current)
	}
	if conflict.Unwrap() == nil {
		t.Errorf("%v: the driver's own error is lost", err)
	}
}

func TestSerialCounts(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.serialShop(t)
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, tt := range []struct {
				write
				want string
			}{
				{rowWrites[0], "1:30#8 2:10#1 3:10#1"},
				{rowWrites[1], "2:10#1 3:10#1"},
				{rowWrites[2], "1:30#8 2:10#1 3:10#1"},
				{freshInserts[0], "1:10#7 2:10#1 3:10#1 7:10#1"},
				{freshInserts[1], "1:10#7 2:10#1 3:10#1 7:10#1 8:10#1"},
				{freshInserts[2], "1:10#7 2:10#1 3:10#1 7:10#1"},
				{write{"by the application", "UPDATE books SET price = $1, serial = serial + 1 WHERE id = $2 AND serial = $3", []any{30, 1, 7}}, "1:30#8 2:10#1 3:10#1"},
				{write{"insert that names it", "INSERT INTO books (id, serial) VALUES ($1, $2)", []any{7, 70}}, "1:10#7 2:10#1 3:10#1 7:10#70"},
			} {
				sh.version(t, 7)
				if n, err := send(t.Context(), tt.write); n == 0 || err != nil {
					t.Errorf("%s: %d rows, %v", tt.name, n, err)
				}
				sh.wantVersions(t, tt.want)
			}
			// A statement of the application's own that finds another version.
			sh.version(t, 7)
			if n, err := send(t.Context(), write{"", "UPDATE books SET price = $1 WHERE id = $2 AND serial = $3", []any{30, 1, 6}}); n != 0 || err != nil {
				t.Errorf("own condition: %d rows, %v", n, err)
			}
			sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
		})
	})
}

// versionedWrites are the kinds of write on the book 1 that are compared.
var versionedWrites = rowWrites[:2]

func TestSerialOfTheRowPasses(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.serialShop(t)
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for i, want := range []string{"1:30#8 2:10#1 3:10#1", "2:10#1 3:10#1"} {
				sh.version(t, 7)
				if n, err := send(at(t, 7), versionedWrites[i]); n != 1 || err != nil {
					t.Errorf("%s: %d rows, %v", versionedWrites[i].name, n, err)
				}
				sh.wantVersions(t, want)
			}
			// NULL, of a row that was there before the column, counts as 0.
			for i, want := range []string{"1:30#1 2:10#1 3:10#1", "2:10#1 3:10#1"} {
				sh.version(t, 7)
				sh.exec(t, "UPDATE books SET serial = NULL WHERE id = 1")
				if n, err := send(at(t, 0), versionedWrites[i]); n != 1 || err != nil {
					t.Errorf("%s of a row without serial: %d rows, %v", versionedWrites[i].name, n, err)
				}
				sh.wantVersions(t, want)
			}
		})
	})
}

func TestSerialConflict(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.serialShop(t)
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, w := range versionedWrites {
				for _, serials := range [][2]int64{{6, 7}, {8, 7}, {0, 7}, {7, 0}, {1 << 62, 1<<63 - 1}, {3, -4}} {
					expected, current := serials[0], serials[1]
					sh.version(t, current)
					_, err := send(at(t, expected), w)
					wantConflict(t, err, expected, current)
					sh.wantVersions(t, fmt.Sprintf("1:10#%d 2:10#1 3:10#1", current))
				}
				if t.Failed() {
					t.Fatalf("by %s", w.name)
				}
			}
			// All or nothing: the books 2 and 3 are at another version.
			sh.version(t, 7)
			_, err := send(at(t, 7), write{"", "UPDATE books SET price = $1", []any{30}})
			wantConflict(t, err, 7, 1)
			sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
		})
	})
}

func TestSerialGone(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.serialShop(t)
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			sh.version(t, 7)
			sh.exec(t, "DELETE FROM books WHERE id = 1")
			for _, w := range versionedWrites {
				_, err := send(at(t, 7), w)
				wantError(t, err, sqlfence.ErrGone)
				if errors.Is(err, sqlfence.ErrConflict) {
					t.Errorf("%v is a conflict, too", err)
				}
				sh.wantVersions(t, "2:10#1 3:10#1")
			}
		})
	})
}

// After a row turned out to be gone the transaction goes on, as it was no error of
// the database.
func TestSerialGoneLeavesTheTransaction(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.serialShop(t)
		sh.version(t, 7)
		err := sh.inTx(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(at(t, 3), "DELETE FROM books WHERE id = 99")
			wantError(t, err, sqlfence.ErrGone)
			var id int
			err = tx.QueryRowContext(at(t, 3), "UPDATE books SET price = 1 WHERE id = 99 RETURNING id").Scan(&id)
			wantError(t, err, sqlfence.ErrGone)
			_, err = tx.ExecContext(at(t, 7), "UPDATE books SET price = 30 WHERE id = 1")
			return err
		})
		if err != nil {
			t.Error(err)
		}
		sh.wantVersions(t, "1:30#8 2:10#1 3:10#1")
	})
}

// In PostgreSQL, an upsert under WithSerial updates the version that was read, or
// inserts where none was.
func TestSerialUpsert(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.serialShop(t)
		upsert := rowWrites[2].as(s.dialect)
		for _, f := range forms[:4] { // those of Exec
			t.Run(f.name, func(t *testing.T) {
				run := func(serial int64) error {
					n, err := f.run(at(t, serial), sh.db, upsert)
					if err == nil && n != 1 {
						t.Errorf("%d rows", n)
					}
					return err
				}
				sh.version(t, 7)
				if s.dialect == sqlfence.SQLite {
					wantError(t, run(7), sqlfence.ErrUnguardable)
					sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
					return
				}
				wantConflict(t, run(6), 6, 7)
				wantConflict(t, run(0), 0, 7)
				sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
				if err := run(7); err != nil {
					t.Error(err)
				}
				sh.wantVersions(t, "1:30#8 2:10#1 3:10#1")
				sh.exec(t, "DELETE FROM books WHERE id = 1")
				wantError(t, run(8), sqlfence.ErrGone)
				wantError(t, run(1), sqlfence.ErrGone)
				sh.wantVersions(t, "2:10#1 3:10#1")
				if err := run(0); err != nil {
					t.Error(err)
				}
				sh.wantVersions(t, "1:30#1 2:10#1 3:10#1")
			})
		}
	})
}

// A prepared statement is given its context when it is executed.
func TestSerialPreparedBefore(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.serialShop(t)
		sh.version(t, 7)
		sh.db.SetMaxOpenConns(1)
		for _, prepared := range []context.Context{t.Context(), at(t, 3)} {
			stmt, err := sh.db.PrepareContext(prepared, write{query: "UPDATE books SET price = price + $1 WHERE id = $2"}.as(s.dialect).query)
			if err != nil {
				t.Fatal(err)
			}
			sh.version(t, 7)
			for _, tt := range []struct {
				ctx  context.Context
				id   int
				want error
			}{
				{t.Context(), 1, nil}, {at(t, 8), 1, nil}, {at(t, 8), 1, sqlfence.ErrConflict}, {t.Context(), 1, nil},
				{at(t, 8), 99, sqlfence.ErrGone}, {t.Context(), 99, nil}, {at(t, 10), 1, nil},
			} {
				if _, err := stmt.ExecContext(tt.ctx, 1, tt.id); !errors.Is(err, tt.want) {
					t.Errorf("err = %v, want %v", err, tt.want)
				}
			}
			sh.wantVersions(t, "1:14#11 2:10#1 3:10#1")
			if err := stmt.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// One round trip each, whatever the answer.
func TestSerialOneRoundTrip(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{b, sql.LevelDefault}.serialShop(t)
		db, c := b.counted(t, sh.source, books(sqlfence.Serial("serial")))
		if err := db.Ping(); err != nil {
			t.Fatal(err)
		}
		for _, w := range versionedWrites {
			w = w.as(b.dialect)
			for _, tt := range []struct {
				serial int64
				want   error
			}{{6, sqlfence.ErrConflict}, {7, nil}, {99, nil}} {
				sh.version(t, 7)
				if tt.serial == 99 {
					sh.exec(t, "DELETE FROM books")
					tt.want = sqlfence.ErrGone
				}
				for _, send := range []func() error{
					func() error { _, err := db.ExecContext(at(t, tt.serial), w.query, w.args...); return err },
					func() error {
						sh.version(t, 7)
						if tt.serial == 99 {
							sh.exec(t, "DELETE FROM books")
						}
						c.reset()
						_, err := returned(db.QueryContext(at(t, tt.serial), w.query+" RETURNING books.id", w.args...))
						return err
					},
				} {
					c.reset()
					if err := send(); !errors.Is(err, tt.want) {
						t.Errorf("%s: err = %v, want %v", w.name, err, tt.want)
					}
					if got := c.kinds(); len(got) != 1 {
						t.Errorf("%s: %v, want one call", w.name, got)
					}
				}
			}
		}
	})
}
