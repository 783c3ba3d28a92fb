package drivers

import (
	"testing"

	"github.com/sqlfence/sqlfence"
)

// An assignment of the key that Enforce mode refuses is told in Observe mode, and
// a table that is Optional is written without a token as ever.

func TestKeyAssignmentIsObserved(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		w := watch(t, b, books(sqlfence.RowFence("fence_token"), sqlfence.Key("isbn")), observe)
		update := write{query: "UPDATE books SET isbn = $1 WHERE id = $2", args: []any{"i7", 2}}.as(b.dialect)
		for _, told := range []struct {
			keys   []string
			target error
		}{{[]string{"i2"}, sqlfence.ErrOutOfScope}, {[]string{"i2", "i7"}, sqlfence.ErrUnguardable}, {nil, sqlfence.ErrNoFence}} {
			w.clear(t, 5)
			if n, err := forms[0].run(holdingISBNs(t, 9, told.keys...), w.db, update); n != 1 || err != nil {
				t.Errorf("with %s: %d rows, %v", told.keys, n, err)
			}
			w.wantTold(t, update.query, told.target)
			if got := w.isbns(t); got != "1:i1:10 2:i7:10 3:i3:10" {
				t.Errorf("with %s: left %s", told.keys, got)
			}
		}
		w.clear(t, 5)
		keep := write{query: "UPDATE books SET isbn = $1, price = 30 WHERE id = $2", args: []any{"i2", 2}}.as(b.dialect)
		if _, err := forms[0].run(holdingISBNs(t, 9, "i2"), w.db, keep); err != nil {
			t.Error(err)
		}
		w.wantTold(t, keep.query, nil)
		if got := w.state(t, true); got != "1:10@5 2:30@9 3:10@5" {
			t.Errorf("left %s", got)
		}
	})
}

func TestKeyAssignmentWithoutATokenWhereItIsOptional(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{base: b}.shop(t, sqlfence.Ledger(), sqlfence.Key("isbn"), sqlfence.Optional())
		sh.resetISBNs(t)
		update := write{query: "UPDATE books SET isbn = $1 WHERE id = $2", args: []any{"i7", 2}}.as(b.dialect)
		_, err := forms[0].run(holdingISBNs(t, 9, "i2"), sh.db, update)
		wantError(t, err, sqlfence.ErrOutOfScope)
		if n, err := forms[0].run(t.Context(), sh.db, update); n != 1 || err != nil {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

// The row's key changes while the statement waits for the row.
func TestKeyAssignmentThatWaits(t *testing.T) {
	eachPostgres(t, func(t *testing.T, s setting) {
		for _, fence := range keyFences {
			sh := s.shop(t, append(fence.rules, sqlfence.Key("isbn"))...)
			for _, w := range keyKeepers[:5] {
				if w.name == "update of all with the key" {
					continue // comes to find no row
				}
				t.Run(fence.name+"/"+w.name, func(t *testing.T) {
					sh.resetISBNs(t)
					tx, err := sh.plain.Begin()
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = tx.Rollback() }()
					var pid int
					if err := tx.QueryRow("UPDATE books SET isbn = 'i7' WHERE id = 2 RETURNING pg_backend_pid()").Scan(&pid); err != nil {
						t.Fatal(err)
					}
					done := make(chan struct{})
					ctx := holdingISBNs(t, 9, "i2")
					var result error
					go func() {
						defer close(done)
						_, result = forms[0].run(ctx, sh.db, w)
					}()
					sh.wantBlocked(t, pid, done)
					if err := tx.Commit(); err != nil {
						t.Fatal(err)
					}
					<-done
					if !refusedByIsolation(result) {
						wantError(t, result, sqlfence.ErrOutOfScope)
					}
					if got := sh.isbns(t); got != "1:i1:10 2:i7:10 3:i3:10" {
						t.Errorf("left %s", got)
					}
				})
			}
		}
	})
}
