package drivers

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// A table whose rows are written with a serial only.

func (s setting) requiredShop(t testing.TB, rules ...sqlfence.Rule) *shop {
	t.Helper()
	sh := s.shop(t, append(rules, sqlfence.Serial("serial", sqlfence.Required()))...)
	sh.exec(t, "ALTER TABLE books ADD COLUMN serial bigint")
	return sh
}

func wantNoSerial(t testing.TB, err error) {
	t.Helper()
	wantError(t, err, sqlfence.ErrNoSerial)
	if err != nil && !strings.Contains(err.Error(), `table "books"`) || err != nil && !strings.Contains(err.Error(), "WithSerial") {
		t.Errorf("%v: want the table and what to do", err)
	}
}

func TestSerialRequired(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.requiredShop(t)
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, w := range append(slices.Clone(rowWrites),
				write{"assigned", "UPDATE books SET price = $1, serial = 99 WHERE id = $2", []any{30, 1}},
				write{"upsert that assigns", "INSERT INTO books (id, serial) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET serial = excluded.serial", []any{1, 99}},
				write{"upsert with a condition", "INSERT INTO books (id, price) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET price = 30 WHERE books.id = 1", []any{1, 99}},
			) {
				sh.version(t, 7)
				_, err := send(t.Context(), w)
				wantNoSerial(t, err)
				sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
			}
			for i, want := range []string{"1:30#8 2:10#1 3:10#1", "2:10#1 3:10#1"} {
				sh.version(t, 7)
				_, err := send(at(t, 6), versionedWrites[i])
				wantConflict(t, err, 6, 7)
				if n, err := send(at(t, 7), versionedWrites[i]); n != 1 || err != nil {
					t.Errorf("%d rows, %v", n, err)
				}
				sh.wantVersions(t, want)
			}
			// New rows need none.
			for _, w := range append(slices.Clone(freshInserts),
				write{"upsert", "INSERT INTO books (id, isbn) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET price = 30", []any{7, "i7"}},
				write{"nothing", "INSERT INTO books (id, isbn) VALUES (1, 'i1'), ($1, $2) ON CONFLICT (id) DO NOTHING", []any{7, "i7"}},
			) {
				sh.version(t, 7)
				if n, err := send(t.Context(), w); n == 0 || err != nil {
					t.Errorf("%s: %d rows, %v", w.name, n, err)
				}
				if got := sh.versions(t); !strings.HasPrefix(got, "1:10#7 2:10#1 3:10#1 7:10#1") {
					t.Errorf("%s: books are %s", w.name, got)
				}
			}
		})
	})
}

// What only writes rows that are there isn't sent, in any place of a statement.
func TestSerialRequiredIsNotSent(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{b, sql.LevelDefault}.requiredShop(t)
		db, c := b.counted(t, sh.source, books(sqlfence.Serial("serial", sqlfence.Required())))
		sh.version(t, 7)
		queries := []string{"UPDATE books SET price = 30 WHERE id = 99", "DELETE FROM books"}
		if b.dialect == sqlfence.Postgres {
			queries = append(queries,
				"MERGE INTO books b USING pens p ON b.id = p.id WHEN MATCHED THEN DELETE",
				"MERGE INTO books b USING pens p ON b.id = p.id WHEN NOT MATCHED THEN INSERT (id) VALUES (p.id) WHEN MATCHED THEN UPDATE SET price = 30",
				"WITH d AS (DELETE FROM books RETURNING id) INSERT INTO pens (id) SELECT id FROM d",
				"EXPLAIN ANALYZE UPDATE books SET price = 30",
			)
		}
		for _, query := range queries {
			c.reset()
			_, err := db.ExecContext(t.Context(), query)
			wantNoSerial(t, err)
			if sent := c.kinds(); len(sent) != 0 {
				t.Errorf("%s: %v were sent", query, sent)
			}
		}
		if b.dialect == sqlfence.Postgres {
			if _, err := db.ExecContext(t.Context(), "MERGE INTO books b USING (VALUES (1), (9)) n (id) ON b.id = n.id WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id) WHEN MATCHED THEN DO NOTHING"); err != nil {
				t.Error(err)
			}
			sh.wantVersions(t, "1:10#7 2:10#1 3:10#1 9:10#1")
		}
		// Prepared without a context's serial, it is executed with one.
		stmt, err := db.PrepareContext(t.Context(), "UPDATE books SET price = 30 WHERE id = 1")
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		_, err = stmt.ExecContext(t.Context())
		wantNoSerial(t, err)
		if _, err := stmt.ExecContext(at(t, 7)); err != nil {
			t.Error(err)
		}
	})
}

// A stale token is told rather than that a serial is missing, where the database
// tells; a missing token is as before.
func TestSerialRequiredWithTokens(t *testing.T) {
	for _, fence := range fences {
		eachBase(t, func(t *testing.T, b base) {
			sh := setting{b, sql.LevelDefault}.requiredShop(t, fence.rule)
			sh.version(t, 7)
			sh.raise(t, "books", 9)
			sh.exec(t, "UPDATE books SET fence_token = 9")
			w := rowWrites[2].as(b.dialect)
			_, err := sh.db.ExecContext(holding(t, 8), w.query, w.args...)
			wantStale(t, err, 8, 9)
			_, err = sh.db.ExecContext(holding(t, 9), w.query, w.args...)
			wantNoSerial(t, err)
			_, err = sh.db.ExecContext(at(t, 7), "UPDATE books SET price = 30 WHERE id = 1")
			wantError(t, err, sqlfence.ErrNoFence)
			sh.wantVersions(t, "1:10#7 2:10#1 3:10#1")
		})
	}
}

// Observe mode tells what would be refused, once, and counts; Bypass passes.
func TestSerialRequiredPasses(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.requiredShop(t)
		enforced := sh.db
		var told []error
		sh.db = s.fenced(t, sh.source, books(sqlfence.Serial("serial", sqlfence.Required())), sqlfence.WithMode(sqlfence.Observe),
			sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) {
				if e.Kind == sqlfence.WouldRefuse {
					told = append(told, e.Err)
				}
			}))
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for i, want := range []string{"1:30#8 2:10#1 3:10#1", "2:10#1 3:10#1", "1:30#8 2:10#1 3:10#1"} {
				told = nil
				sh.version(t, 7)
				if n, err := send(t.Context(), rowWrites[i]); n != 1 || err != nil {
					t.Errorf("%s: %d rows, %v", rowWrites[i].name, n, err)
				}
				sh.wantVersions(t, want)
				if len(told) != 1 {
					t.Errorf("%s: told %v, want one", rowWrites[i].name, told)
				} else {
					wantNoSerial(t, told[0])
				}
			}
		})
		sh.version(t, 7)
		for _, w := range rowWrites[:2] {
			w = w.as(s.dialect)
			if _, err := enforced.ExecContext(sqlfence.Bypass(t.Context(), "a repair"), w.query, w.args...); err != nil {
				t.Error(err)
			}
		}
		sh.wantVersions(t, "2:10#1 3:10#1")
	})
}

// Retry gives up at once.
func TestSerialRequiredIsNotRetried(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{b, sql.LevelDefault}.requiredShop(t)
		sh.version(t, 7)
		runs := 0
		err := sqlfence.Retry(t.Context(), sh.db, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
			runs++
			_, err := tx.ExecContext(ctx, rowWrites[2].literal())
			return err
		})
		wantNoSerial(t, err)
		if runs != 1 || errors.Is(err, sqlfence.ErrConflict) {
			t.Errorf("it ran %d times: %v", runs, err)
		}
	})
}
