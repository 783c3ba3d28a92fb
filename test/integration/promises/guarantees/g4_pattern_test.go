package guarantees_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A pattern guards tables that aren't registered by name, including tables that are created later, each by separate
// tokens.
func TestPatternGuardsAllTables(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		for fence, rule := range map[string]sqlfence.Rule{
			"row": sqlfence.RowFence("fence_token"), "ledger": sqlfence.Ledger(),
		} {
			t.Run(fence, func(t *testing.T) {
				sh := s.Shop(t, rule)
				db := s.Fenced(t, sh.Source, sqlfence.WithTable("*", rule), sqlfence.WithTable("pens", sqlfence.Exempt()))
				sh.Reset(t, 7)
				sh.Exec(t, "CREATE TABLE later (id integer PRIMARY KEY, price integer, fence_token bigint)")
				sh.Exec(t, "INSERT INTO later (id, price, fence_token) VALUES (1, 10, 7)")
				sh.Exec(t, "INSERT INTO pens (id, price) VALUES (1, 10)")
				sh.Raise(t, "later", 7)
				for _, table := range []string{"books", "later"} {
					update := "UPDATE " + table + " SET price = 20 WHERE id = 1"
					write := func(value int64) error {
						ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: table, Value: value})
						_, err := db.ExecContext(ctx, update)
						return err
					}
					wantStaleIn(t, write(6), table)
					_, err := db.ExecContext(t.Context(), update)
					harness.WantError(t, err, sqlfence.ErrNoFence)
					other := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "pens", Value: 8})
					if _, err := db.ExecContext(other, update); !errors.Is(err, sqlfence.ErrNoFence) {
						t.Errorf("%s by a token of another table: %v", table, err)
					}
					if got := price(t, sh, table); got != 10 {
						t.Fatalf("%s are at %d", table, got)
					}
					if err := write(7); err != nil {
						t.Fatal(err)
					}
					if got := price(t, sh, table); got != 20 {
						t.Fatalf("%s are at %d", table, got)
					}
				}
				if _, err := db.ExecContext(t.Context(), "UPDATE pens SET price = 20"); err != nil {
					t.Error(err)
				}
				// A prepared statement, and tables at once.
				stmt, err := db.PrepareContext(t.Context(), "UPDATE later SET price = 30 WHERE id = 1")
				if err != nil {
					t.Fatal(err)
				}
				defer stmt.Close()
				stale := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "later", Value: 6})
				_, err = stmt.ExecContext(stale)
				wantStaleIn(t, err, "later")
				if got := price(t, sh, "later"); got != 20 {
					t.Errorf("later is at %d", got)
				}
			})
		}
	})
}

// wantStaleIn fails the test unless token 6 of a table was refused because of token 7.
func wantStaleIn(t *testing.T, err error, table string) {
	t.Helper()
	var stale *sqlfence.StaleError
	if !errors.As(err, &stale) || stale.Table != table || stale.Token != (sqlfence.Token{Name: table, Value: 6}) ||
		stale.Current != 7 {
		t.Errorf("%v: want table %s, token 6, current 7", err, table)
	}
}

func price(t *testing.T, sh *harness.Shop, table string) (price int64) {
	t.Helper()
	if err := sh.Plain.QueryRowContext(t.Context(), "SELECT price FROM "+table+" WHERE id = 1").Scan(&price); err != nil {
		t.Fatal(err)
	}
	return price
}

// A table without a column that the pattern's rules need isn't written.
func TestPatternRefusesWhatItCantGuard(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.RowFence("fence_token"))
		sh.Reset(t, 7)
		sh.Exec(t, "INSERT INTO pens (id, price) VALUES (1, 10)")
		db := s.Fenced(t, sh.Source, sqlfence.WithTable("*", sqlfence.RowFence("fence_token")))
		ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "pens", Value: 8})
		_, err := db.ExecContext(ctx, "UPDATE pens SET price = 20")
		harness.WantError(t, err, sqlfence.ErrNotSetUp)
		if got := price(t, sh, "pens"); got != 10 {
			t.Errorf("pens are at %d", got)
		}
	})
}

// A pattern doesn't enforce the rules of an observed table, and a table's registration can enforce rules that a pattern
// observes.
func TestPatternsAndModes(t *testing.T) {
	fence := sqlfence.RowFence("fence_token")
	observed := sqlfence.InMode(sqlfence.Observe)
	for _, tt := range []struct {
		name    string
		options []sqlfence.Option
		passes  string // the table on which a stale write passes
	}{
		{"the table observed", []sqlfence.Option{sqlfence.WithTable("*", fence),
			sqlfence.WithTable("books", fence, observed)}, "books"},
		{"the pattern observed", []sqlfence.Option{sqlfence.WithTable("*", fence, observed),
			sqlfence.WithTable("books", fence)}, "later"},
		{"a table of another schema observed", []sqlfence.Option{sqlfence.WithTable("*", fence),
			sqlfence.WithTable("elsewhere.books", fence, observed)}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
				sh := s.Shop(t, fence)
				sh.Reset(t, 7)
				sh.Exec(t, "CREATE TABLE later (id integer PRIMARY KEY, price integer, fence_token bigint)")
				sh.Exec(t, "INSERT INTO later (id, price, fence_token) VALUES (1, 10, 7)")
				db := s.Fenced(t, sh.Source, tt.options...)
				for _, table := range []string{"books", "later"} {
					ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: table, Value: 6})
					_, err := db.ExecContext(ctx, "UPDATE "+table+" SET price = 20 WHERE id = 1")
					if table == tt.passes {
						if err != nil || price(t, sh, table) != 20 {
							t.Errorf("%s are observed: %v, at %d", table, err, price(t, sh, table))
						}
						continue
					}
					wantStaleIn(t, err, table)
				}
			})
		})
	}
}

// Many goroutines write to many tables at once, in a pool that has met none of these tables.
func TestPatternAtOnce(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		const tables = 8
		sh := s.Shop(t, sqlfence.Ledger())
		for i := range tables {
			sh.Exec(t, fmt.Sprintf("CREATE TABLE later%d (id integer PRIMARY KEY, price integer)", i))
			sh.Exec(t, fmt.Sprintf("INSERT INTO later%d (id, price) VALUES (1, 10)", i))
			sh.Raise(t, fmt.Sprint("later", i), 7)
		}
		db := s.Fenced(t, sh.Source, sqlfence.WithTable("*"))
		var group sync.WaitGroup
		for i := range 2 * tables {
			group.Go(func() {
				table := fmt.Sprint("later", i%tables)
				ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: table, Value: 6})
				_, err := db.ExecContext(ctx, "UPDATE "+table+" SET price = 20 WHERE id = 1")
				wantStaleIn(t, err, table)
			})
		}
		group.Wait()
	})
}
