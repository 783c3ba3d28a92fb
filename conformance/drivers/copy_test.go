package drivers

import (
	"context"
	"database/sql"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// As pq.CopyIn writes them.
const (
	copyBooks = `COPY "books" ("id", "price") FROM STDIN`
	copyPens  = `COPY "pens" ("id", "price") FROM STDIN`
)

// lib/pq's COPY is a prepared statement with any number of arguments, each
// execution a row. On a registered table it is refused, elsewhere it is lib/pq's
// own: nothing is added to the data.
func TestPqCopy(t *testing.T) {
	postgresDSN(t)
	b := bases[slices.IndexFunc(bases, func(b base) bool { return b.name == "pq" })]
	for _, fence := range fences {
		t.Run(fence.name, func(t *testing.T) {
			s := newShop(t, b, fence.rule)
			s.reset(t, 5)
			for _, query := range []string{
				copyBooks,
				`COPY "public"."books" ("id", "price") FROM STDIN`,
				"COPY books (id, price) FROM STDIN",
				"copy BOOKS from stdin with (format csv)",
			} {
				err := s.inTx(holding(t, 7), func(tx *sql.Tx) error {
					_, err := tx.PrepareContext(holding(t, 7), query)
					return err
				})
				wantOnly(t, err, sqlfence.ErrUnguardable)
			}
			unchanged := s.unchanged(t)
			for _, ctx := range []context.Context{t.Context(), holding(t, 7)} {
				s.exec(t, "DELETE FROM pens")
				err := s.inTx(ctx, func(tx *sql.Tx) error { return copyIn(ctx, ctx, tx, copyPens, 100) })
				if err != nil {
					t.Fatal(err)
				}
				var n, sum int
				if err := s.plain.QueryRow("SELECT count(*), sum(price) FROM pens").Scan(&n, &sum); err != nil || n != 100 || sum != 4950 {
					t.Errorf("%d pens worth %d, %v", n, sum, err)
				}
			}
			unchanged()

			// Under Bypass it is lib/pq's own on a registered table too.
			bypass := sqlfence.Bypass(t.Context(), "an import")
			s.exec(t, "DELETE FROM books")
			err := s.inTx(bypass, func(tx *sql.Tx) error { return copyIn(bypass, bypass, tx, copyBooks, 3) })
			if err != nil {
				t.Error(err)
			}
			if got := s.state(t, true); got != "0:0@0 1:1@0 2:2@0" {
				t.Errorf("books are %s", got)
			}
			// Prepared under it, and executed without: refused.
			err = s.inTx(bypass, func(tx *sql.Tx) error { return copyIn(bypass, holding(t, 7), tx, copyBooks, 3) })
			wantOnly(t, err, sqlfence.ErrUnguardable)
			if n := countBooks(t, s.plain); n != 3 {
				t.Errorf("%d books, want 3", n)
			}
		})
	}
}

// copyIn prepares and executes COPY, each in its own context, for rows of a
// number and itself.
func copyIn(prepare, exec context.Context, tx *sql.Tx, query string, rows int) error {
	_, err := prepared(prepare, tx, query, func(stmt *sql.Stmt) (int64, error) {
		for i := range rows {
			if _, err := stmt.ExecContext(exec, i, i); err != nil {
				return 0, err
			}
		}
		return affected(stmt.ExecContext(exec))
	})
	return err
}
