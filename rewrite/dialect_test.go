package rewrite

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// guardedDialects are the dialects for which New accepts tables.
func guardedDialects(t testing.TB) (all []databases.Dialect) {
	t.Helper()
	for _, db := range databases.All() {
		if _, err := render.Guarded(db.Dialect); err == nil {
			all = append(all, db.Dialect)
		}
	}
	return all
}

// answers returns a test's table, and fails the test unless the table has a line for each guarded dialect.
func answers[T any](t testing.TB, table map[databases.Dialect]T) map[databases.Dialect]T {
	t.Helper()
	for _, d := range guardedDialects(t) {
		if _, ok := table[d]; !ok {
			t.Errorf("the test has no line for %v", d)
		}
	}
	return table
}

// Each dialect either is guarded, with all its parts, or is refused.
func TestDialectsAreGuardedOrRefused(t *testing.T) {
	if got := guardedDialects(t); !slices.Equal(got, docDialects[:]) {
		t.Errorf("guarded are %v, documented %v", got, docDialects)
	}
	for d := databases.Dialect(0); d < databases.Dialect(len(databases.All())+2); d++ {
		says, err := render.Guarded(d)
		_, newErr := New(d, []Table{{Name: "books", Ledger: true}})
		if (err == nil) != (newErr == nil) {
			t.Errorf("%v: %v, but New says %v", d, err, newErr)
		}
		if err != nil {
			continue
		}
		if d.String() == databases.Dialect(0).String() {
			t.Errorf("%d has no name", d)
		}
		if less, other := says.Guard.Compares(guard.Less), says.Guard.Compares(guard.LessOrEqual); *less == *other || *less == *says.Guard.Compares(guard.Equal) {
			t.Errorf("%v compares alike", d)
		}
	}
}

// Package read has samples of each dialect.
func TestDialectsAreTestedBelow(t *testing.T) {
	for _, d := range guardedDialects(t) {
		if _, err := os.Stat(filepath.Join("internal", "read", "testdata", filepath.Base(goldenFile(d)))); err != nil {
			t.Errorf("package read has no samples of %v: %v", d, err)
		}
	}
}

// The scanner reads the guard's placeholders as the builder writes them, with their number in dialects that number
// placeholders. So a guard's placeholder may precede the statement's.
func TestPlaceholdersAreRead(t *testing.T) {
	for _, d := range guardedDialects(t) {
		for typ := range sqltext.Bigint + 1 {
			b := sqltext.Builder{Dialect: says(d)}
			b.Placeholder(7, typ)
			s := sample{sql: "UPDATE books SET price = " + b.String()}
			want := 7
			if !says(d).Capabilities().Numbers.Is() {
				want = 1
			}
			if p := s.plan(t, d, "row"); p.Verdict != guard.Guard || p.Inputs != want {
				t.Errorf("%v: %v, %d arguments, want %d: %s", d, p.Verdict, p.Inputs, want, s.sql)
			}
		}
	}
}
