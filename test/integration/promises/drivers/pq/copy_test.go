package pq_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The texts that pq.CopyIn returns.
const (
	copyBooks = `COPY "books" ("id", "price") FROM STDIN`
	copyPens  = `COPY "pens" ("id", "price") FROM STDIN`
)

// lib/pq's COPY is a prepared statement with any number of arguments; each execution adds a row. On a registered table
// it is refused. On other tables it works as with lib/pq alone, and no data is added.
func TestPqCopy(t *testing.T) {
	harness.NeedPostgres(t)
	b := harness.Bases[slices.IndexFunc(harness.Bases, func(b harness.Base) bool { return b.Name == "pq" })]
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			s := harness.NewShop(t, b, fence.Rule)
			s.Reset(t, 5)
			for _, query := range []string{
				copyBooks,
				`COPY "public"."books" ("id", "price") FROM STDIN`,
				"COPY books (id, price) FROM STDIN",
				"copy BOOKS from stdin with (format csv)",
			} {
				err := s.InTx(harness.Holding(t, 7), func(tx *sql.Tx) error {
					_, err := tx.PrepareContext(harness.Holding(t, 7), query)
					return err
				})
				harness.WantOnly(t, err, sqlfence.ErrUnguardable)
			}
			unchanged := s.Unchanged(t)
			for _, ctx := range []context.Context{t.Context(), harness.Holding(t, 7)} {
				s.Exec(t, "DELETE FROM pens")
				err := s.InTx(ctx, func(tx *sql.Tx) error { return copyIn(ctx, ctx, tx, copyPens, 100) })
				if err != nil {
					t.Fatal(err)
				}
				var n, sum int
				if err := s.Plain.QueryRow("SELECT count(*), sum(price) FROM pens").Scan(&n, &sum); err != nil || n != 100 || sum != 4950 {
					t.Errorf("%d pens worth %d, %v", n, sum, err)
				}
			}
			unchanged()

			// Under Bypass lib/pq's COPY also runs on a registered table.
			bypass := sqlfence.Bypass(t.Context(), "an import")
			s.Exec(t, "DELETE FROM books")
			err := s.InTx(bypass, func(tx *sql.Tx) error { return copyIn(bypass, bypass, tx, copyBooks, 3) })
			if err != nil {
				t.Error(err)
			}
			if got := s.State(t, true); got != "0:0@0 1:1@0 2:2@0" {
				t.Errorf("books are %s", got)
			}
			// A COPY that was prepared under Bypass is refused if it is executed without Bypass.
			err = s.InTx(bypass, func(tx *sql.Tx) error { return copyIn(bypass, harness.Holding(t, 7), tx, copyBooks, 3) })
			harness.WantOnly(t, err, sqlfence.ErrUnguardable)
			if n := harness.CountBooks(t, s.Plain); n != 3 {
				t.Errorf("%d books, want 3", n)
			}
		})
	}
}

// copyIn prepares and executes COPY, each in a separate context. Each row is the same number twice.
func copyIn(prepare, exec context.Context, tx *sql.Tx, query string, rows int) error {
	_, err := harness.Prepared(prepare, tx, query, func(stmt *sql.Stmt) (int64, error) {
		for i := range rows {
			if _, err := stmt.ExecContext(exec, i, i); err != nil {
				return 0, err
			}
		}
		return harness.Affected(stmt.ExecContext(exec))
	})
	return err
}
