package guarantees_test

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A constraint of SQLite may be declared to replace a conflicting row. Then a statement that doesn't show this deletes
// a row, which may have a newer stored token. OR ABORT in the guarded statement overrides the constraint.
func TestG1RowFenceWhereAConstraintReplacesRows(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("only SQLite has ON CONFLICT in constraints")
		}
		for _, w := range []harness.Write{
			{Name: "insert", Query: "INSERT INTO books (id, isbn) VALUES ($1, $2)", Args: []any{7, "i1"}},
			{Name: "insert of several", Query: "INSERT INTO books (id, isbn) VALUES ($1, $2), (8, 'i8')", Args: []any{7, "i1"}},
			{Name: "update", Query: "UPDATE books SET isbn = $1 WHERE id = $2", Args: []any{"i1", 2}},
		} {
			t.Run(w.Name, func(t *testing.T) {
				sh := harness.Setting{Base: b}.Shop(t, sqlfence.RowFence("fence_token"))
				sh.Exec(t, "DROP TABLE books")
				sh.Exec(t, "CREATE TABLE books (id integer PRIMARY KEY, isbn text UNIQUE ON CONFLICT REPLACE, price integer DEFAULT 10, fence_token bigint)")
				sh.Reset(t, 5)
				sh.Exec(t, "UPDATE books SET fence_token = 9 WHERE id = 1")
				unchanged := sh.Unchanged(t)
				_, err := harness.Forms[0].Run(harness.Holding(t, 5), sh.DB, w.As(b.Dialect))
				if err == nil || errors.Is(err, sqlfence.ErrUnguardable) {
					t.Errorf("err = %v, want the database's", err)
				}
				unchanged()
			})
		}
	})
}
