package drivers

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// In SQLite a constraint may say that the row in the way is to be replaced. The
// statement doesn't show it, but it deletes a row, and that row may have a newer
// mark. (OR ABORT in the statement overrides what the constraint says.)
func TestG1RowFenceWhereAConstraintReplacesRows(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		if b.dialect != sqlfence.SQLite {
			t.Skip("only SQLite has ON CONFLICT in constraints")
		}
		for _, w := range []write{
			{"insert", "INSERT INTO books (id, isbn) VALUES ($1, $2)", []any{7, "i1"}},
			{"insert of several", "INSERT INTO books (id, isbn) VALUES ($1, $2), (8, 'i8')", []any{7, "i1"}},
			{"update", "UPDATE books SET isbn = $1 WHERE id = $2", []any{"i1", 2}},
		} {
			t.Run(w.name, func(t *testing.T) {
				sh := setting{base: b}.shop(t, sqlfence.RowFence("fence_token"))
				sh.exec(t, "DROP TABLE books")
				sh.exec(t, "CREATE TABLE books (id integer PRIMARY KEY, isbn text UNIQUE ON CONFLICT REPLACE, price integer DEFAULT 10, fence_token bigint)")
				sh.reset(t, 5)
				sh.exec(t, "UPDATE books SET fence_token = 9 WHERE id = 1")
				unchanged := sh.unchanged(t)
				_, err := forms[0].run(holding(t, 5), sh.db, w.as(b.dialect))
				if err == nil || errors.Is(err, sqlfence.ErrUnguardable) {
					t.Errorf("err = %v, want the database's", err)
				}
				unchanged()
			})
		}
	})
}
