package stmtcache_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// cached runs test with a shop's database with a cache, and without. It returns the subtests, for tests that compare
// the results.
func cached(t *testing.T, b harness.Base, test func(t *testing.T, s *harness.Shop, db *sql.DB)) (both *harness.Subtests) {
	both = new(harness.Subtests)
	for _, size := range []int{0, 8} {
		both.Run(t, fmt.Sprintf("size=%d", size), func(t *testing.T) {
			s := harness.NewShop(t, b)
			s.Reset(t, 5)
			test(t, s, b.Fenced(t, s.Source, harness.Books(sqlfence.RowFence("fence_token")), sqlfence.WithStatementCache(size)))
		})
	}
	return both
}

const setPrice = "UPDATE books SET price = $1 WHERE id = $2"

// While a kept statement's rows are open, it isn't executed again.
func TestOpenRows(t *testing.T) {
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		var seen [2]string
		both := cached(t, b, func(t *testing.T, s *harness.Shop, db *sql.DB) {
			ctx := harness.Holding(t, 5)
			query := harness.Write{Query: "UPDATE books SET price = price + $1 RETURNING id, price"}.As(b.Dialect).Query
			write := harness.Write{Query: setPrice}.As(b.Dialect).Query
			var b strings.Builder
			for range 3 {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				rows, err := tx.QueryContext(ctx, query, 1)
				if err != nil {
					t.Fatal(err)
				}
				rows.Next()
				// With open rows on its connection the cache doesn't change what the driver does.
				fmt.Fprintln(&b, harness.Describe(tx.QueryContext(ctx, query, 1)))
				_, err = tx.ExecContext(ctx, write, 40, 1)
				fmt.Fprintln(&b, harness.ErrorText(err))
				for rows.Next() {
					var id, price int
					fmt.Fprintln(&b, rows.Scan(&id, &price), id, price)
				}
				fmt.Fprintln(&b, rows.Err(), rows.Close())
				fmt.Fprintln(&b, harness.Describe(tx.QueryContext(ctx, query, 1)))
				_, err = tx.ExecContext(ctx, write, 40, 1)
				fmt.Fprintln(&b, harness.ErrorText(err))
				fmt.Fprintln(&b, tx.Commit())
			}
			if strings.HasSuffix(t.Name(), "0") {
				seen[0] = b.String()
			} else {
				seen[1] = b.String()
			}
		})
		both.NeedAll(t)
		if seen[0] != seen[1] {
			t.Errorf("with a cache:\n%s\nwithout:\n%s", seen[1], seen[0])
		}
	})
}

// The same holds for rows of an unguarded statement, which the cache doesn't know.
func TestOpenRowsOfAnother(t *testing.T) {
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		var seen []string
		both := cached(t, b, func(t *testing.T, s *harness.Shop, db *sql.DB) {
			ctx, write := harness.Holding(t, 5), harness.Write{Query: setPrice}.As(b.Dialect).Query
			for range 2 {
				if _, err := db.ExecContext(ctx, write, 40, 1); err != nil {
					t.Fatal(err)
				}
			}
			c, err := db.Conn(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			rows, err := c.QueryContext(ctx, "SELECT id FROM books ORDER BY id")
			if err != nil {
				t.Fatal(err)
			}
			rows.Next()
			_, err = c.ExecContext(ctx, write, 41, 1)
			text := harness.ErrorText(err)
			_, err = c.ExecContext(sqlfence.Bypass(ctx, "test"), "CREATE TEMP TABLE other (id integer)")
			text += harness.ErrorText(err)
			text += fmt.Sprint(rows.Next(), rows.Err(), rows.Close())
			_, err = c.ExecContext(ctx, write, 42, 1)
			seen = append(seen, text+fmt.Sprint(err))
		})
		both.NeedAll(t)
		if seen[0] != seen[1] {
			t.Errorf("with a cache %s, without %s", seen[1], seen[0])
		}
	})
}

// A kept statement that Exec has run to its first row would hold its transaction open.
func TestExecOfRows(t *testing.T) {
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		cached(t, b, func(t *testing.T, s *harness.Shop, db *sql.DB) {
			ctx := harness.Holding(t, 5)
			query := harness.Write{Query: "UPDATE books SET price = $1 WHERE id = $2 returning id"}.As(b.Dialect).Query
			db.SetMaxOpenConns(1)
			for i := range 3 {
				if _, err := db.ExecContext(ctx, query, 40+i, 1); err != nil {
					t.Fatal(err)
				}
				short, cancel := context.WithTimeout(t.Context(), harness.Patience/2)
				if _, err := s.Plain.ExecContext(short, "UPDATE books SET writer = 1 WHERE id = 1"); err != nil {
					t.Fatalf("another connection: %v", err)
				}
				cancel()
			}
		})
	})
}

// If a context ends before or during an execution, the kept statement can be executed again.
func TestCancelled(t *testing.T) {
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		// With a price of 1 the statement counts for a long time.
		query := "UPDATE books SET price = (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < CASE WHEN ?1 = 1 THEN 1000000000 ELSE 1 END) " +
			"SELECT count(*) FROM n) WHERE id = ?2"
		cached(t, b, func(t *testing.T, s *harness.Shop, db *sql.DB) {
			ctx := harness.Holding(t, 5)
			db.SetMaxOpenConns(1)
			for range 3 {
				if _, err := db.ExecContext(ctx, query, 2, 1); err != nil {
					t.Fatal(err)
				}
				short, cancel := context.WithCancel(ctx)
				done := make(chan error, 1)
				go func() {
					_, err := db.ExecContext(short, query, 1, 1)
					done <- err
				}()
				time.Sleep(50 * time.Millisecond) // the test can't see when it has begun
				cancel()
				if err := <-done; err == nil {
					t.Error("a cancelled statement has succeeded")
				}
				if _, err := db.ExecContext(short, query, 2, 1); !errors.Is(err, context.Canceled) {
					t.Errorf("err = %v", err)
				}
				harness.WantStale(t, func() error { _, err := db.ExecContext(harness.Holding(t, 4), query, 3, 1); return err }(), 4, 5)
			}
		})
	})
}

// While another connection has locked the file, the kept statement fails. Later it succeeds.
func TestBusy(t *testing.T) {
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		cached(t, b, func(t *testing.T, s *harness.Shop, _ *sql.DB) {
			source := harness.Impatient(s.Source)
			db := b.Fenced(t, source, harness.Books(sqlfence.RowFence("fence_token")))
			ctx := harness.Holding(t, 5)
			for range 3 {
				if _, err := db.ExecContext(ctx, "UPDATE books SET price = ? WHERE id = ?", 40, 1); err != nil {
					t.Fatal(err)
				}
				tx, err := s.Plain.Begin()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Exec("UPDATE books SET writer = 1"); err != nil {
					t.Fatal(err)
				}
				if _, err := db.ExecContext(ctx, "UPDATE books SET price = ? WHERE id = ?", 41, 1); err == nil {
					t.Error("two writers")
				}
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
}
