package keys_test

import (
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// In Observe mode an assignment of the key that Enforce mode refuses is reported. An Optional table is written without
// a token as before.

func TestKeyAssignmentIsObserved(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		w := harness.Watch(t, b, harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Key("isbn")), harness.ObserveMode)
		update := harness.Write{Query: "UPDATE books SET isbn = $1 WHERE id = $2", Args: []any{"i7", 2}}.As(b.Dialect)
		for _, told := range []struct {
			keys   []string
			target error
		}{{[]string{"i2"}, sqlfence.ErrOutOfScope}, {[]string{"i2", "i7"}, sqlfence.ErrUnguardable}, {nil, sqlfence.ErrNoFence}} {
			w.Clear(t, 5)
			if n, err := harness.Forms[0].Run(holdingISBNs(t, 9, told.keys...), w.DB, update); n != 1 || err != nil {
				t.Errorf("with %s: %d rows, %v", told.keys, n, err)
			}
			w.WantEvents(t, update.Query, told.target)
			if got := isbns(t, w.Shop); got != "1:i1:10 2:i7:10 3:i3:10" {
				t.Errorf("with %s: left %s", told.keys, got)
			}
		}
		w.Clear(t, 5)
		keep := harness.Write{Query: "UPDATE books SET isbn = $1, price = 30 WHERE id = $2", Args: []any{"i2", 2}}.As(b.Dialect)
		if _, err := harness.Forms[0].Run(holdingISBNs(t, 9, "i2"), w.DB, keep); err != nil {
			t.Error(err)
		}
		w.WantEvents(t, keep.Query, nil)
		if got := w.State(t, true); got != "1:10@5 2:30@9 3:10@5" {
			t.Errorf("left %s", got)
		}
	})
}

func TestKeyAssignmentWithoutATokenWhereItIsOptional(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.Setting{Base: b}.Shop(t, sqlfence.Ledger(), sqlfence.Key("isbn"), sqlfence.Optional())
		resetISBNs(t, sh)
		update := harness.Write{Query: "UPDATE books SET isbn = $1 WHERE id = $2", Args: []any{"i7", 2}}.As(b.Dialect)
		_, err := harness.Forms[0].Run(holdingISBNs(t, 9, "i2"), sh.DB, update)
		harness.WantError(t, err, sqlfence.ErrOutOfScope)
		if n, err := harness.Forms[0].Run(t.Context(), sh.DB, update); n != 1 || err != nil {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

// The row's key changes while the statement waits for the row.
func TestKeyAssignmentThatWaits(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		for _, fence := range keyFences {
			sh := s.Shop(t, append(fence.rules, sqlfence.Key("isbn"))...)
			for _, w := range keyKeepers[:5] {
				if w.Name == "update of all with the key" {
					continue // comes to find no row
				}
				t.Run(fence.name+"/"+w.Name, func(t *testing.T) {
					resetISBNs(t, sh)
					tx := harness.Begin(t.Context(), t, sh.Plain, sql.LevelDefault)
					if _, err := tx.Exec("UPDATE books SET isbn = 'i7' WHERE id = 2"); err != nil {
						t.Fatal(err)
					}
					err := sh.Behind(t, tx, func() error {
						_, err := harness.Forms[0].Run(holdingISBNs(t, 9, "i2"), sh.DB, w)
						return err
					})
					if !harness.RefusedByIsolation(err) {
						harness.WantError(t, err, sqlfence.ErrOutOfScope)
					}
					if got := isbns(t, sh); got != "1:i1:10 2:i7:10 3:i3:10" {
						t.Errorf("left %s", got)
					}
				})
			}
		}
	})
}
