package coverage_test

import (
	"context"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/coverage"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// The tables that a program writes and doesn't register are named, each database by its own registrations.
func TestUnregisteredTablesAreNamed(t *testing.T) {
	seen := coverage.Limited(3)
	open := func(opts ...sqlfence.Option) func(query string, tokens ...sqlfence.Token) {
		none := func(context.Context, fakedb.Call) (fakedb.Response, error) { return fakedb.Response{}, nil }
		db, err := sqlfence.OpenDB(fakedb.New(none), append(opts, sqlfence.WithDialect(sqlfence.Postgres), seen.Option())...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return func(query string, tokens ...sqlfence.Token) {
			if _, err := db.ExecContext(sqlfence.WithFence(t.Context(), tokens...), query); err != nil {
				t.Error(err)
			}
		}
	}
	names := func() (names []string) {
		for _, table := range seen.Report().Unregistered {
			names = append(names, table.Name)
		}
		return names
	}
	const update = "UPDATE pens SET price = 1"
	open(sqlfence.WithTable("*", sqlfence.RowFence("fence_token")))(update, sqlfence.Token{Name: "pens", Value: 1})
	open(sqlfence.WithTable("pens", sqlfence.Exempt()))(update)
	open(sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))("SELECT price FROM pens")
	if got := names(); got != nil {
		t.Errorf("named %q, want none", got)
	}
	books := open(sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
	books("WITH x AS (DELETE FROM shop.pens RETURNING id) UPDATE books SET price = 1 FROM x",
		sqlfence.Token{Name: "books", Value: 1})
	books(update)
	books("UPDATE ink SET price = 1") // beyond the limit
	if got := names(); !slices.Equal(got, []string{"pens", "shop.pens"}) {
		t.Errorf("named %q", got)
	}
	r := seen.Report()
	if pens := r.Unregistered[0]; pens.Passed != 1 || pens.Guarded != 0 {
		t.Errorf("%+v", pens)
	}
	if mixed := r.Unregistered[1]; mixed.Guarded != 1 {
		t.Errorf("%+v", mixed)
	}
	if err := r.Check(); err == nil || r.Dropped != 1 { // the dropped statement is the only problem
		t.Errorf("Check = %v", err)
	}
	i := slices.IndexFunc(r.Statements, func(s coverage.Statement) bool { return s.Fingerprint == "UPDATE pens SET price = ?" })
	if got := r.Statements[i].Unregistered; !slices.Equal(got, []string{"pens"}) {
		t.Errorf("the statement writes %q", got)
	}
}

// New rows without a token count as open under Optional alone. Under UnfencedInserts such rows don't count as open,
// because the rule allows new rows without a token.
func TestNewRowsAreOpenUnderOptionalAlone(t *testing.T) {
	seen := coverage.New()
	none := func(context.Context, fakedb.Call) (fakedb.Response, error) { return fakedb.Response{}, nil }
	db, err := sqlfence.OpenDB(fakedb.New(none), sqlfence.WithDialect(sqlfence.SQLite), seen.Option(),
		sqlfence.WithTable("orders", sqlfence.RowFence("fence_token"), sqlfence.UnfencedInserts()),
		sqlfence.WithTable("pens", sqlfence.RowFence("fence_token"), sqlfence.Optional()))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for query, open := range map[string]bool{"INSERT INTO orders (price) VALUES (10)": false, "INSERT INTO pens (price) VALUES (10)": true} {
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
		report := seen.Report()
		i := slices.IndexFunc(report.Statements, func(s coverage.Statement) bool { return s.Unfenced == 1 && s.IsOpen() == open })
		if i < 0 {
			t.Errorf("%s: %+v, want it open: %v", query, report.Statements, open)
		}
		if !open && len(report.Statements) == 1 && report.Check() != nil {
			t.Error(report.Check())
		}
	}
}
