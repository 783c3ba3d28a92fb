package observe_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Tables can have different modes. An observed table changes nothing for a program: a database with books enforced and
// pens observed has the same answers and rows as a database where only books is registered, except for the stored
// tokens of pens.

var (
	onBooks = []string{
		"UPDATE books SET price = 30 WHERE id < 3",
		"DELETE FROM books WHERE id = 2 RETURNING id",
		"INSERT INTO books (id, price) VALUES (1, 30) ON CONFLICT (id) DO UPDATE SET price = 30",
		"INSERT INTO books (id, price) SELECT id + 10, price FROM pens",
		"UPDATE books SET fence_token = 1",
	}
	onPens = []string{
		"UPDATE pens SET price = 30 WHERE id < 3",
		"DELETE FROM pens WHERE id = 2 RETURNING id",
		"INSERT INTO pens (id, price) VALUES (1, 30) ON CONFLICT (id) DO UPDATE SET price = 30",
		"UPDATE pens SET price = (SELECT max(price) + 1 FROM books)",
		"INSERT INTO pens DEFAULT VALUES",
		"UPDATE pens SET price = price / 0 WHERE id = 1",
		"UPDATE pens SET no_such_column = 1",
	}
	// PostgreSQL's.
	onBoth = []string{
		"WITH p AS (UPDATE pens SET price = 30 WHERE id < 3 RETURNING id) UPDATE books SET price = 40 WHERE id IN (SELECT id FROM p)",
		"WITH b AS (UPDATE books SET price = 40 WHERE id < 3 RETURNING id) DELETE FROM pens WHERE id IN (SELECT id FROM b) RETURNING id",
		"WITH b AS (DELETE FROM books RETURNING id, price) INSERT INTO pens (id, price) SELECT id + 20, price FROM b",
		"WITH p AS (UPDATE pens SET fence_token = 1) UPDATE books SET price = 40",
		"WITH p AS (UPDATE pens SET price = 1) UPDATE books SET fence_token = 1",
		"WITH p AS (UPDATE pens SET price = 1) UPDATE books SET price = price / 0",
		"TRUNCATE pens, books",
		"DO $$ BEGIN DELETE FROM pens; END $$",
		"DO $$ BEGIN DELETE FROM pens; DELETE FROM books; END $$",
	}
)

func TestModeByTable(t *testing.T) {
	books := harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Ledger())
	for _, variant := range []struct {
		name    string
		rules   []sqlfence.Rule
		columns []string
	}{
		{"row fence", []sqlfence.Rule{sqlfence.RowFence("fence_token")}, []string{"fence_token"}},
		{"row fence without its column", []sqlfence.Rule{sqlfence.RowFence("fence_token")}, nil},
		{"ledger", nil, nil},
		{"serial", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Serial("version", sqlfence.Required())}, []string{"fence_token", "version"}},
	} {
		t.Run(variant.name, func(t *testing.T) {
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				var kinds []sqlfence.EventKind
				pens := sqlfence.WithTable("pens", append(variant.rules, sqlfence.InMode(sqlfence.Observe))...)
				mixed := newPens(t, b, variant.columns, books, pens, sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { kinds = append(kinds, e.Kind) }))
				alone := newPens(t, b, variant.columns, books)
				texts := slices.Concat(onBooks, onPens)
				if b.Dialect == sqlfence.Postgres {
					texts = append(texts, onBoth...)
				}
				seen := map[sqlfence.EventKind]int{}
				for _, query := range texts {
					for _, held := range [][]int64{{0, 0}, {9, 0}, {0, 9}, {9, 9}, {8, 9}, {9, 8}, {8, 8}} { // of books, of pens
						for _, way := range []string{"exec", "prepared query"} {
							for _, inTx := range []bool{false, true} {
								if !harness.Keep(t, fmt.Sprint(query, held, way, inTx)) {
									continue
								}
								kinds = nil
								got := mixed.run(t, harness.Ways[way], inTx, query, held)
								want := alone.run(t, harness.Ways[way], inTx, query, held)
								if got != want {
									t.Errorf("%s with tokens %v by %s, in a transaction %v:\n%s\nwithout observed tables\n%s", query, held, way, inTx, got, want)
								}
								refused := strings.Contains(got, "refused")
								for _, kind := range kinds {
									seen[kind]++
									if (kind == sqlfence.Refused) != refused {
										t.Errorf("%s with tokens %v by %s: told %v, and %s", query, held, way, kinds, got)
									}
								}
							}
						}
					}
				}
				if seen[sqlfence.Refused] == 0 || seen[sqlfence.WouldRefuse] == 0 {
					t.Errorf("told %v", seen)
				}
			})
		})
	}
}

// newPens returns a shop whose table pens has the given columns, too.
func newPens(t *testing.T, b harness.Base, columns []string, opts ...sqlfence.Option) *pens {
	t.Helper()
	p := &pens{harness.NewShop(t, b)}
	for _, column := range columns {
		p.Exec(t, "ALTER TABLE pens ADD COLUMN "+column+" bigint")
	}
	p.DB = b.Fenced(t, p.Source, opts...)
	return p
}

type pens struct{ *harness.Shop }

// run runs a statement on rows with the stored token 9, and describes the error and the rows.
func (p *pens) run(t *testing.T, run harness.RunFunc, inTx bool, query string, held []int64) string {
	t.Helper()
	p.Reset(t, 9)
	p.Exec(t, "INSERT INTO pens (id, price) VALUES (1, 10), (2, 10), (3, 10)")
	_, _ = p.Plain.ExecContext(t.Context(), "UPDATE pens SET fence_token = 9") // fails where pens has no fence column
	ctx := t.Context()
	for i, name := range []string{"books", "pens"} {
		if held[i] > 0 {
			ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: name, Value: held[i]})
		}
	}
	var err error
	if !inTx {
		err = run(ctx, p.DB, query)
	} else {
		err = p.inTx(ctx, run, query)
	}
	return fmt.Sprintf("%s; books %s; pens %s", outcomeOf(err), p.State(t, true), p.prices(t))
}

// inTx runs the query between two SELECTs in a transaction, and commits unless a statement fails.
func (p *pens) inTx(ctx context.Context, run harness.RunFunc, query string) error {
	tx, err := p.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // the error is the statement's
	if _, err := tx.ExecContext(ctx, "SELECT 1"); err != nil {
		return err
	}
	if err := run(ctx, tx, query); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "SELECT 2"); err != nil {
		return err
	}
	return tx.Commit()
}

func (p *pens) prices(t *testing.T) (all string) {
	t.Helper()
	rows, err := p.Plain.QueryContext(t.Context(), "SELECT id, price FROM pens ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int
		var price sql.NullInt64
		if err := rows.Scan(&id, &price); err != nil {
			t.Fatal(err)
		}
		all += fmt.Sprintf("%d:%v ", id, price.Int64)
	}
	return all
}

// outcomeOf describes an error by what an application can distinguish: done, or refused with which of the errors.
func outcomeOf(err error) string {
	if err == nil {
		return "done"
	}
	for _, refused := range []error{sqlfence.ErrStale, sqlfence.ErrNoFence, sqlfence.ErrUnguardable} {
		if errors.Is(err, refused) {
			return "refused: " + refused.Error()
		}
	}
	return "failed: " + harness.ErrorText(err)
}
