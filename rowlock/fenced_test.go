package rowlock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
)

// On a fenced database the statements pass unchanged, even on the registered table invoice, and no observer gets an
// event.
func TestStatementsPassUnreported(t *testing.T) {
	eachOperation(t, slices.Concat(ofTable, ofManager), func(t *testing.T, d *desk, op operation) {
		table, m := d.managed(t)
		if err := op.run(t.Context(), table, m); err != nil {
			t.Fatal(err)
		}
		want := texts(d.Sent())
		d.tables.rows["[7]"] = row{total: 100, serial: int64(1)}
		d.adaHolds()
		d.fence(t, func(_ context.Context, e sqlfence.Event) { t.Errorf("%v, %s: %s", e.Kind, e.Reason, e.Query) })
		table, m = d.managed(t)
		if err := op.run(t.Context(), table, m); err != nil {
			t.Fatal(err)
		}
		if got := texts(d.Sent()); !slices.Equal(got, want) {
			t.Errorf("on a fenced database it sends\n%s\nelse\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// fence puts sqlfence before the desk, with its table registered.
func (d *desk) fence(t testing.TB, observer sqlfence.Observer) {
	t.Helper()
	db, err := sqlfence.OpenDB(d.DB, sqlfence.WithDialect(d.dialect), sqlfence.WithObserver(observer),
		sqlfence.WithTable("invoice", sqlfence.RowFence("fence_token")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	d.db = db
}

// The work of a save sends the application's statements, which are guarded like others.
func TestSaveIsGuarded(t *testing.T) {
	saves := map[string]func(ctx context.Context, table *rowlock.Table) error{
		"SaveRelease": func(ctx context.Context, table *rowlock.Table) error { return table.SaveRelease(ctx, ada, raise) },
		"SaveKeep":    func(ctx context.Context, table *rowlock.Table) error { return second(table.SaveKeep(ctx, ada, raise)) },
	}
	for name, save := range saves {
		eachDialect(t, func(t *testing.T, d *desk) {
			d.adaHolds()
			before := d.state()
			d.fence(t, func(context.Context, sqlfence.Event) {})
			table, _ := d.managed(t)
			if err := save(t.Context(), table); !errors.Is(err, sqlfence.ErrNoFence) || d.state() != before {
				t.Errorf("%s without a token: %v, %s", name, err, d.state())
			}
			d.Sent()
			err := save(sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "invoice", Value: 3}), table)
			if err != nil || d.row().total != 120 {
				t.Errorf("%s with a token: %v, %+v", name, err, d.row())
			}
			var guarded []string
			for _, text := range texts(d.Sent()) {
				if strings.Contains(text, "fence_token") {
					guarded = append(guarded, text)
				}
			}
			if len(guarded) != 1 || !strings.Contains(guarded[0], "total = $1") {
				t.Errorf("%s: guarded are %q, want what the save sent", name, guarded)
			}
		})
	}
}
