package serials_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// These tests check what Serial and WithSerial promise, on every driver, at every level, in every form of sending a
// statement.

// serialShop is a shop whose books have versions.
func serialShop(t testing.TB, s harness.Setting, rules ...sqlfence.Rule) *harness.Shop {
	t.Helper()
	sh := s.Shop(t, append(rules, sqlfence.Serial("serial"))...)
	sh.Exec(t, "ALTER TABLE books ADD COLUMN serial bigint")
	return sh
}

// version stores books 1, 2 and 3, the first with this serial and the others with 1.
func version(t testing.TB, s *harness.Shop, serial int64) {
	t.Helper()
	s.Reset(t, 0)
	s.Exec(t, "UPDATE books SET serial = 1")
	s.Exec(t, "UPDATE books SET serial = $1 WHERE id = 1", serial)
}

func TestSerialCounts(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := serialShop(t, s)
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for _, tt := range []struct {
				harness.Write
				want string
			}{
				{harness.RowWrites[0], "1:30#8 2:10#1 3:10#1"},
				{harness.RowWrites[1], "2:10#1 3:10#1"},
				{harness.RowWrites[2], "1:30#8 2:10#1 3:10#1"},
				{harness.FreshInserts[0], "1:10#7 2:10#1 3:10#1 7:10#1"},
				{harness.FreshInserts[1], "1:10#7 2:10#1 3:10#1 7:10#1 8:10#1"},
				{harness.FreshInserts[2], "1:10#7 2:10#1 3:10#1 7:10#1"},
				{harness.Write{Name: "by the application", Query: "UPDATE books SET price = $1, serial = serial + 1 WHERE id = $2 AND serial = $3", Args: []any{30, 1, 7}}, "1:30#8 2:10#1 3:10#1"},
				{harness.Write{Name: "insert that names it", Query: "INSERT INTO books (id, serial) VALUES ($1, $2)", Args: []any{7, 70}}, "1:10#7 2:10#1 3:10#1 7:10#70"},
			} {
				version(t, sh, 7)
				if n, err := send(t.Context(), tt.Write); n == 0 || err != nil {
					t.Errorf("%s: %d rows, %v", tt.Name, n, err)
				}
				sh.WantVersions(t, tt.want)
			}
			// A condition of the application finds another version, so the statement writes no row.
			version(t, sh, 7)
			if n, err := send(t.Context(), harness.Write{Name: "", Query: "UPDATE books SET price = $1 WHERE id = $2 AND serial = $3", Args: []any{30, 1, 6}}); n != 0 || err != nil {
				t.Errorf("own condition: %d rows, %v", n, err)
			}
			sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
		})
	})
}

// versionedWrites are the kinds of write to book 1 whose serial is compared.
var versionedWrites = harness.RowWrites[:2]

func TestSerialOfTheRowPasses(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := serialShop(t, s)
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for i, want := range []string{"1:30#8 2:10#1 3:10#1", "2:10#1 3:10#1"} {
				version(t, sh, 7)
				if n, err := send(harness.WithSerial(t, 7), versionedWrites[i]); n != 1 || err != nil {
					t.Errorf("%s: %d rows, %v", versionedWrites[i].Name, n, err)
				}
				sh.WantVersions(t, want)
			}
			// NULL, in a row that is older than the column, counts as 0.
			for i, want := range []string{"1:30#1 2:10#1 3:10#1", "2:10#1 3:10#1"} {
				version(t, sh, 7)
				sh.Exec(t, "UPDATE books SET serial = NULL WHERE id = 1")
				if n, err := send(harness.WithSerial(t, 0), versionedWrites[i]); n != 1 || err != nil {
					t.Errorf("%s of a row without serial: %d rows, %v", versionedWrites[i].Name, n, err)
				}
				sh.WantVersions(t, want)
			}
		})
	})
}

func TestSerialConflict(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := serialShop(t, s)
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for _, w := range versionedWrites {
				for _, serials := range [][2]int64{{6, 7}, {8, 7}, {0, 7}, {7, 0}, {1 << 62, 1<<63 - 1}, {3, -4}} {
					expected, current := serials[0], serials[1]
					version(t, sh, current)
					_, err := send(harness.WithSerial(t, expected), w)
					harness.WantConflict(t, err, expected, current)
					sh.WantVersions(t, fmt.Sprintf("1:10#%d 2:10#1 3:10#1", current))
				}
				if t.Failed() {
					t.Fatalf("by %s", w.Name)
				}
			}
			// Books 2 and 3 are at another version, so no row is written.
			version(t, sh, 7)
			_, err := send(harness.WithSerial(t, 7), harness.Write{Name: "", Query: "UPDATE books SET price = $1", Args: []any{30}})
			harness.WantConflict(t, err, 7, 1)
			sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
		})
	})
}

func TestSerialGone(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := serialShop(t, s)
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			version(t, sh, 7)
			sh.Exec(t, "DELETE FROM books WHERE id = 1")
			for _, w := range versionedWrites {
				_, err := send(harness.WithSerial(t, 7), w)
				harness.WantError(t, err, sqlfence.ErrGone)
				if errors.Is(err, sqlfence.ErrConflict) {
					t.Errorf("%v is a conflict, too", err)
				}
				sh.WantVersions(t, "2:10#1 3:10#1")
			}
		})
	})
}

// ErrGone doesn't end the transaction, because the database has reported no error.
func TestSerialGoneLeavesTheTransaction(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := serialShop(t, s)
		version(t, sh, 7)
		err := sh.InTx(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(harness.WithSerial(t, 3), "DELETE FROM books WHERE id = 99")
			harness.WantError(t, err, sqlfence.ErrGone)
			if s.Returns() {
				var id int
				err = tx.QueryRowContext(harness.WithSerial(t, 3), "UPDATE books SET price = 1 WHERE id = 99 RETURNING id").Scan(&id)
				harness.WantError(t, err, sqlfence.ErrGone)
			}
			_, err = tx.ExecContext(harness.WithSerial(t, 7), "UPDATE books SET price = 30 WHERE id = 1")
			return err
		})
		if err != nil {
			t.Error(err)
		}
		sh.WantVersions(t, "1:30#8 2:10#1 3:10#1")
	})
}

// In PostgreSQL an upsert under WithSerial updates the version that was read, or inserts a row if there was none.
func TestSerialUpsert(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := serialShop(t, s)
		upsert := harness.RowWrites[2].As(s.Dialect)
		for _, f := range harness.Forms[:4] { // the forms of Exec
			t.Run(f.Name, func(t *testing.T) {
				run := func(serial int64) error {
					n, err := f.Run(harness.WithSerial(t, serial), sh.DB, upsert)
					if err == nil && n != 1 {
						t.Errorf("%d rows", n)
					}
					return err
				}
				version(t, sh, 7)
				if s.Dialect != sqlfence.Postgres {
					harness.WantError(t, run(7), sqlfence.ErrUnguardable)
					sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
					return
				}
				harness.WantConflict(t, run(6), 6, 7)
				harness.WantConflict(t, run(0), 0, 7)
				sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
				if err := run(7); err != nil {
					t.Error(err)
				}
				sh.WantVersions(t, "1:30#8 2:10#1 3:10#1")
				sh.Exec(t, "DELETE FROM books WHERE id = 1")
				harness.WantError(t, run(8), sqlfence.ErrGone)
				harness.WantError(t, run(1), sqlfence.ErrGone)
				sh.WantVersions(t, "2:10#1 3:10#1")
				if err := run(0); err != nil {
					t.Error(err)
				}
				sh.WantVersions(t, "1:30#1 2:10#1 3:10#1")
			})
		}
	})
}

// A prepared statement has the serial of the context of its execution.
func TestSerialPreparedBefore(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := serialShop(t, s)
		version(t, sh, 7)
		sh.DB.SetMaxOpenConns(1)
		for _, prepared := range []context.Context{t.Context(), harness.WithSerial(t, 3)} {
			stmt, err := sh.DB.PrepareContext(prepared, harness.Write{Query: "UPDATE books SET price = price + $1 WHERE id = $2"}.As(s.Dialect).Query)
			if err != nil {
				t.Fatal(err)
			}
			version(t, sh, 7)
			for _, tt := range []struct {
				ctx  context.Context
				id   int
				want error
			}{
				{t.Context(), 1, nil}, {harness.WithSerial(t, 8), 1, nil}, {harness.WithSerial(t, 8), 1, sqlfence.ErrConflict}, {t.Context(), 1, nil},
				{harness.WithSerial(t, 8), 99, sqlfence.ErrGone}, {t.Context(), 99, nil}, {harness.WithSerial(t, 10), 1, nil},
			} {
				if _, err := stmt.ExecContext(tt.ctx, 1, tt.id); !errors.Is(err, tt.want) {
					t.Errorf("err = %v, want %v", err, tt.want)
				}
			}
			sh.WantVersions(t, "1:14#11 2:10#1 3:10#1")
			if err := harness.CloseStmt(stmt); err != nil {
				t.Error(err)
			}
		}
	})
}

// Each write takes one round trip, whatever its result is.
func TestSerialOneRoundTrip(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := serialShop(t, harness.Setting{Base: b, Level: sql.LevelDefault})
		db, c := b.Counted(t, sh.Source, harness.Books(sqlfence.Serial("serial")))
		if err := db.Ping(); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), "UPDATE books SET price = price"); err != nil { // runs the probe
			t.Fatal(err)
		}
		plain, plainCount := b.Counted(t, sh.Source)
		for _, w := range versionedWrites {
			w = w.As(b.Dialect)
			plainCount.Reset()
			if _, err := plain.ExecContext(t.Context(), w.Query, w.Args...); err != nil {
				t.Fatal(err)
			}
			want := plainCount.Kinds()
			for _, tt := range []struct {
				serial int64
				want   error
			}{{6, sqlfence.ErrConflict}, {7, nil}, {99, nil}} {
				version(t, sh, 7)
				if tt.serial == 99 {
					sh.Exec(t, "DELETE FROM books")
					tt.want = sqlfence.ErrGone
				}
				for _, send := range []func() error{
					func() error {
						_, err := db.ExecContext(harness.WithSerial(t, tt.serial), w.Query, w.Args...)
						return err
					},
					func() error {
						if !b.Returns() {
							return tt.want
						}
						version(t, sh, 7)
						if tt.serial == 99 {
							sh.Exec(t, "DELETE FROM books")
						}
						c.Reset()
						_, err := harness.Returned(db.QueryContext(harness.WithSerial(t, tt.serial), w.Query+" RETURNING books.id", w.Args...))
						return err
					},
				} {
					c.Reset()
					if err := send(); !errors.Is(err, tt.want) {
						t.Errorf("%s: err = %v, want %v", w.Name, err, tt.want)
					}
					if got := c.Kinds(); len(got) > len(want) {
						t.Errorf("%s: %v, want %v", w.Name, got, want)
					}
				}
			}
		}
	})
}
