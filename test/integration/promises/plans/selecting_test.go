package plans_test

import (
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// selecting are DELETEs of two rows with subqueries and functions in their conditions. The first two are evaluated
// twice.
var selecting = []harness.Write{
	{Name: "subquery", Query: "DELETE FROM books WHERE id < (SELECT max(b.id) FROM books b) AND price = $1",
		Args: []any{10}},
	{Name: "alias", Query: "DELETE FROM books AS a WHERE a.id IN (SELECT b.id FROM books b WHERE b.id < $1)",
		Args: []any{3}},
	{Name: "function", Query: "DELETE FROM books WHERE id + 0 * length(replace('a', 'a', 'b')) < $1", Args: []any{3}},
}

type sender func(w harness.Write, value int64) (int64, error)

func eachSelecting(t *testing.T, test func(t *testing.T, sh *harness.Shop, send sender, w harness.Write)) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, fence := range harness.Fences {
			for _, keyed := range [][]sqlfence.Rule{nil, {sqlfence.Key("id")}} {
				sh := harness.NewShop(t, b, append([]sqlfence.Rule{fence.Rule}, keyed...)...)
				names := []string(nil)
				name := fence.Name
				if keyed != nil {
					names, name = []string{"1", "2", "3"}, name+" by key"
				}
				for _, form := range harness.Forms[:4] {
					for _, w := range sh.Runnable(t, selecting) {
						t.Run(name+"/"+form.Name+"/"+w.Name, func(t *testing.T) {
							sh.Reset(t, 5, names...)
							test(t, sh, func(w harness.Write, value int64) (int64, error) {
								ctx := harness.Holding(t, value)
								if keyed != nil {
									ctx = harness.HoldingKeys(t, 1, value, 2, value)
								}
								return form.Run(ctx, sh.DB, w)
							}, w)
						})
					}
				}
			}
		}
	})
}

func TestDeleteWithSubqueryOrFunctionCountsItsRows(t *testing.T) {
	eachSelecting(t, func(t *testing.T, sh *harness.Shop, send sender, w harness.Write) {
		if n, err := send(w, 5); err != nil || n != 2 {
			t.Errorf("%d rows, %v; want 2", n, err)
		}
		if n := harness.CountBooks(t, sh.Plain); n != 1 {
			t.Errorf("%d rows are left, want 1", n)
		}
	})
}

func TestStaleDeleteWithSubqueryOrFunctionIsRefused(t *testing.T) {
	eachSelecting(t, func(t *testing.T, sh *harness.Shop, send sender, w harness.Write) {
		unchanged := sh.Unchanged(t)
		_, err := send(w, 4)
		harness.WantError(t, err, sqlfence.ErrStale)
		unchanged()
	})
}

// The guard is evaluated before a trigger that replaces the DELETE by an UPDATE.
func TestStaleSoftDeleteOfTriggerIsRefused(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.RowFence("fence_token"))
		sh.Exec(t, "CREATE FUNCTION soft() RETURNS trigger LANGUAGE plpgsql AS "+
			"'BEGIN UPDATE books SET price = 0 WHERE id = OLD.id; RETURN NULL; END'")
		sh.Exec(t, "CREATE TRIGGER soft BEFORE DELETE ON books FOR EACH ROW EXECUTE FUNCTION soft()")
		sh.Exec(t, "INSERT INTO books (id, fence_token) VALUES (1, 5), (2, 5)")
		unchanged := sh.Unchanged(t)
		for _, condition := range []string{"id = (SELECT min(id) FROM books)", "id = length(replace('a', 'a', 'b'))",
			"id IN (SELECT id FROM books ORDER BY id LIMIT 1)"} {
			_, err := sh.DB.ExecContext(harness.Holding(t, 4), "DELETE FROM books WHERE "+condition)
			harness.WantError(t, err, sqlfence.ErrStale)
		}
		unchanged()
	})
}
