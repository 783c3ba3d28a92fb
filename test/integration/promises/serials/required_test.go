package serials_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The tests of this file have a table whose rows can be written only with a serial.

func requiredShop(t testing.TB, s harness.Setting, rules ...sqlfence.Rule) *harness.Shop {
	t.Helper()
	sh := s.Shop(t, append(rules, sqlfence.Serial("serial", sqlfence.Required()))...)
	sh.Exec(t, "ALTER TABLE books ADD COLUMN serial bigint")
	return sh
}

func wantNoSerial(t testing.TB, err error) {
	t.Helper()
	harness.WantError(t, err, sqlfence.ErrNoSerial)
	if err != nil && !strings.Contains(err.Error(), `table "books"`) || err != nil && !strings.Contains(err.Error(), "WithSerial") {
		t.Errorf("%v: want the table and what to do", err)
	}
}

func TestSerialRequired(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := requiredShop(t, s)
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for _, w := range sh.Runnable(t, append(slices.Clone(harness.RowWrites),
				harness.Write{Name: "assigned", Query: "UPDATE books SET price = $1, serial = 99 WHERE id = $2", Args: []any{30, 1}},
				harness.Write{Name: "upsert that assigns", Query: "INSERT INTO books (id, serial) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET serial = excluded.serial", Args: []any{1, 99}},
				harness.Write{Name: "upsert with a condition", Query: "INSERT INTO books (id, price) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET price = 30 WHERE books.id = 1", Args: []any{1, 99}},
			)) {
				version(t, sh, 7)
				_, err := send(t.Context(), w)
				wantNoSerial(t, err)
				sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
			}
			for i, want := range []string{"1:30#8 2:10#1 3:10#1", "2:10#1 3:10#1"} {
				version(t, sh, 7)
				_, err := send(harness.WithSerial(t, 6), versionedWrites[i])
				harness.WantConflict(t, err, 6, 7)
				if n, err := send(harness.WithSerial(t, 7), versionedWrites[i]); n != 1 || err != nil {
					t.Errorf("%d rows, %v", n, err)
				}
				sh.WantVersions(t, want)
			}
			// New rows need no serial.
			for _, w := range append(slices.Clone(harness.FreshInserts),
				harness.Write{Name: "upsert", Query: "INSERT INTO books (id, isbn) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET price = 30", Args: []any{7, "i7"}},
				harness.Write{Name: "nothing", Query: "INSERT INTO books (id, isbn) VALUES (1, 'i1'), ($1, $2) ON CONFLICT (id) DO NOTHING", Args: []any{7, "i7"}},
			) {
				version(t, sh, 7)
				if n, err := send(t.Context(), w); n == 0 || err != nil {
					t.Errorf("%s: %d rows, %v", w.Name, n, err)
				}
				if got := sh.Versions(t); !strings.HasPrefix(got, "1:10#7 2:10#1 3:10#1 7:10#1") {
					t.Errorf("%s: books are %s", w.Name, got)
				}
			}
		})
	})
}

// A write that only changes existing rows isn't sent, in any place of a statement.
func TestSerialRequiredIsNotSent(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := requiredShop(t, harness.Setting{Base: b, Level: sql.LevelDefault})
		db, c := b.Counted(t, sh.Source, harness.Books(sqlfence.Serial("serial", sqlfence.Required())))
		version(t, sh, 7)
		queries := []string{"UPDATE books SET price = 30 WHERE id = 99", "DELETE FROM books"}
		if b.Dialect == sqlfence.Postgres {
			queries = append(queries,
				"MERGE INTO books b USING pens p ON b.id = p.id WHEN MATCHED THEN DELETE",
				"MERGE INTO books b USING pens p ON b.id = p.id WHEN NOT MATCHED THEN INSERT (id) VALUES (p.id) WHEN MATCHED THEN UPDATE SET price = 30",
				"WITH d AS (DELETE FROM books RETURNING id) INSERT INTO pens (id) SELECT id FROM d",
				"EXPLAIN ANALYZE UPDATE books SET price = 30",
			)
		}
		for _, query := range queries {
			c.Reset()
			_, err := db.ExecContext(t.Context(), query)
			wantNoSerial(t, err)
			if sent := c.Kinds(); len(sent) != 0 {
				t.Errorf("%s: %v were sent", query, sent)
			}
		}
		if b.Dialect == sqlfence.Postgres && !harness.Lacks(t, sh.Plain, "MERGE INTO") {
			if _, err := db.ExecContext(t.Context(), "MERGE INTO books b USING (VALUES (1), (9)) n (id) ON b.id = n.id WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id) WHEN MATCHED THEN DO NOTHING"); err != nil {
				t.Error(err)
			}
			sh.WantVersions(t, "1:10#7 2:10#1 3:10#1 9:10#1")
		}
		// The statement is prepared without a serial in the context, and executed with a serial.
		stmt, err := db.PrepareContext(t.Context(), "UPDATE books SET price = 30 WHERE id = 1")
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		_, err = stmt.ExecContext(t.Context())
		wantNoSerial(t, err)
		if _, err := stmt.ExecContext(harness.WithSerial(t, 7)); err != nil {
			t.Error(err)
		}
	})
}

// A stale token is reported before a missing serial if the database permits it. A missing token is reported as without
// Required.
func TestSerialRequiredWithTokens(t *testing.T) {
	for _, fence := range harness.Fences {
		harness.EachBase(t, func(t *testing.T, b harness.Base) {
			sh := requiredShop(t, harness.Setting{Base: b, Level: sql.LevelDefault}, fence.Rule)
			version(t, sh, 7)
			sh.Raise(t, "books", 9)
			sh.Exec(t, "UPDATE books SET fence_token = 9")
			w := harness.RowWrites[2].As(b.Dialect)
			_, err := sh.DB.ExecContext(harness.Holding(t, 8), w.Query, w.Args...)
			harness.WantStale(t, err, 8, 9)
			_, err = sh.DB.ExecContext(harness.Holding(t, 9), w.Query, w.Args...)
			wantNoSerial(t, err)
			_, err = sh.DB.ExecContext(harness.WithSerial(t, 7), "UPDATE books SET price = 30 WHERE id = 1")
			harness.WantError(t, err, sqlfence.ErrNoFence)
			sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
		})
	}
}

// Observe mode reports a refusable statement once, and sends the statement unchanged; Bypass lets it pass.
func TestSerialRequiredPasses(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := requiredShop(t, s)
		enforced := sh.DB
		var told []error
		sh.DB = s.Fenced(t, sh.Source, harness.Books(sqlfence.Serial("serial", sqlfence.Required())), sqlfence.WithMode(sqlfence.Observe),
			sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) {
				if e.Kind == sqlfence.WouldRefuse {
					told = append(told, e.Err)
				}
			}))
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for i, want := range []string{"1:30#8 2:10#1 3:10#1", "2:10#1 3:10#1", "1:30#7 2:10#1 3:10#1"} {
				told = nil
				version(t, sh, 7)
				if n, err := send(t.Context(), harness.RowWrites[i]); n != s.Updated(harness.RowWrites[i]) || err != nil {
					t.Errorf("%s: %d rows, %v", harness.RowWrites[i].Name, n, err)
				}
				sh.WantVersions(t, want)
				if len(told) != 1 {
					t.Errorf("%s: told %v, want one", harness.RowWrites[i].Name, told)
				} else {
					wantNoSerial(t, told[0])
				}
			}
		})
		version(t, sh, 7)
		for _, w := range harness.RowWrites[:2] {
			w = w.As(s.Dialect)
			if _, err := enforced.ExecContext(sqlfence.Bypass(t.Context(), "a repair"), w.Query, w.Args...); err != nil {
				t.Error(err)
			}
		}
		sh.WantVersions(t, "2:10#1 3:10#1")
	})
}

// Retry gives up at once.
func TestSerialRequiredIsNotRetried(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := requiredShop(t, harness.Setting{Base: b, Level: sql.LevelDefault})
		version(t, sh, 7)
		runs := 0
		err := sqlfence.Retry(t.Context(), sh.DB, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
			runs++
			_, err := tx.ExecContext(ctx, harness.RowWrites[2].Literal())
			return err
		})
		wantNoSerial(t, err)
		if runs != 1 || errors.Is(err, sqlfence.ErrConflict) {
			t.Errorf("it ran %d times: %v", runs, err)
		}
	})
}
