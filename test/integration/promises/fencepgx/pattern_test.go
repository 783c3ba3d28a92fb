package fencepgx_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// withToken carries a token of one table.
func withToken(t *testing.T, table string, value int64) context.Context {
	return sqlfence.WithFence(t.Context(), sqlfence.Token{Name: table, Value: value})
}

// onPattern runs a test with each fence on all tables but the pens. books and later, which is created when the
// database is open, have row 1 with the price 10 and token 7.
func onPattern(t *testing.T, test func(t *testing.T, s *shop, db *fencepgx.DB)) {
	t.Helper()
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			s := newShop(t, fence.Rule)
			db := s.open(t, func(*pgxpool.Config) {}, sqlfence.WithTable("*", fence.Rule),
				sqlfence.WithTable("pens", sqlfence.Exempt()))
			s.Reset(t, 7)
			s.Exec(t, "CREATE TABLE later (id integer PRIMARY KEY, price integer, fence_token bigint)")
			s.Exec(t, "INSERT INTO later (id, price, fence_token) VALUES (1, 10, 7)")
			s.Exec(t, "INSERT INTO pens (id, price) VALUES (1, 10)")
			s.Raise(t, "later", 7)
			test(t, s, db)
		})
	}
}

// price returns the price of a table's row 1.
func (s *shop) price(t *testing.T, table string) (price int64) {
	t.Helper()
	if err := s.Plain.QueryRowContext(t.Context(), "SELECT price FROM "+table+" WHERE id = 1").Scan(&price); err != nil {
		t.Fatal(err)
	}
	return price
}

// A pattern guards every way to write a table by the token of the table's name, including tables that are created
// later.
func TestPatternGuardsEachMatchingTable(t *testing.T) {
	onPattern(t, func(t *testing.T, s *shop, db *fencepgx.DB) {
		for i, w := range ways {
			for _, table := range []string{"books", "later"} {
				before, want := s.price(t, table), int64(20+i)
				write := func(ctx context.Context) error {
					return w.run(ctx, db, "UPDATE "+table+" SET price = $1 WHERE id = $2 RETURNING id", want, 1)
				}
				var stale *sqlfence.StaleError
				if err := write(withToken(t, table, 6)); !errors.As(err, &stale) || stale.Table != table || stale.Current != 7 {
					t.Errorf("%s of %s with a stale token: %v", w.name, table, err)
				}
				harness.WantError(t, write(t.Context()), sqlfence.ErrNoFence)
				harness.WantError(t, write(withToken(t, "pens", 8)), sqlfence.ErrNoFence)
				if got := s.price(t, table); got != before {
					t.Fatalf("%s: %s are at %d", w.name, table, got)
				}
				if err := write(withToken(t, table, 7)); err != nil {
					t.Errorf("%s of %s: %v", w.name, table, err)
				}
				if got := s.price(t, table); got != want {
					t.Errorf("%s: %s are at %d, want %d", w.name, table, got, want)
				}
			}
			if err := w.run(t.Context(), db, "UPDATE pens SET price = $1 WHERE id = $2 RETURNING id", 20, 1); err != nil {
				t.Errorf("%s of an exempt table: %v", w.name, err)
			}
		}
	})
}

// Batches, prepared statements and COPY are guarded or refused if a table is registered only through a pattern.
func TestPatternOfBatchesNamesAndCopies(t *testing.T) {
	onPattern(t, func(t *testing.T, s *shop, db *fencepgx.DB) {
		both := sqlfence.WithFence(withToken(t, "books", 7), sqlfence.Token{Name: "later", Value: 6})
		b := new(pgx.Batch)
		b.Queue("UPDATE books SET price = 30 WHERE id = 1")
		b.Queue("UPDATE later SET price = 30 WHERE id = 1")
		harness.WantError(t, db.SendBatch(both, b).Close(), sqlfence.ErrStale)

		c, err := db.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
		if _, err := c.Conn().Prepare(t.Context(), "raise", "UPDATE later SET price = 30 WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		_, err = c.Exec(withToken(t, "later", 6), "raise")
		harness.WantError(t, err, sqlfence.ErrStale)
		_, err = c.Exec(withToken(t, "later", 7), "EXECUTE raise")
		harness.WantError(t, err, sqlfence.ErrUnguardable)
		_, err = c.Exec(withToken(t, "later", 7), "DO 'BEGIN UPDATE later SET price = 30; END'")
		harness.WantError(t, err, sqlfence.ErrUnguardable)

		copyTo := func(table string) error {
			rows := pgx.CopyFromRows([][]any{{7, 30}})
			_, err := c.CopyFrom(withToken(t, table, 7), pgx.Identifier{table}, []string{"id", "price"}, rows)
			return err
		}
		// With a row fence each copied row gets the token. COPY to a table with a ledger is refused.
		err = copyTo("later")
		var marked int
		scanned := s.Plain.QueryRowContext(t.Context(), "SELECT count(*) FROM later WHERE id = 7 AND fence_token = 7").Scan(&marked)
		if !(err == nil && marked == 1) && !(errors.Is(err, sqlfence.ErrUnguardable) && marked == 0) || scanned != nil {
			t.Errorf("a copy to a table of the pattern: %v, %d marked, %v", err, marked, scanned)
		}
		if err := copyTo("pens"); err != nil {
			t.Errorf("a copy to an exempt table: %v", err)
		}
		for _, table := range []string{"books", "later"} {
			if got := s.price(t, table); got != 10 {
				t.Errorf("%s are at %d", table, got)
			}
		}
		if _, err := c.Exec(withToken(t, "later", 7), "raise"); err != nil || s.price(t, "later") != 30 {
			t.Errorf("by its name: %v, at %d", err, s.price(t, "later"))
		}
	})
}
