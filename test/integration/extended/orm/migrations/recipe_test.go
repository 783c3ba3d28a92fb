package migrations_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// A recipe is a tool's procedure in docs/migrations.md. It migrates the application's table books to the versions in
// testdata/books: version 1 creates the table, 2 adds the fence column, and 3 adds a price.
type recipe struct {
	name  string
	bases []string

	// own creates sqlfence's own tables.
	own func(ctx context.Context, t *testing.T, db *ownedDB) error

	// up migrates books to a version. A second call changes nothing.
	up func(ctx context.Context, t *testing.T, db *ownedDB, version int) error

	takesNoContext bool
}

// An ownedDB is a database that a tool may close.
type ownedDB struct {
	*sql.DB
	harness.Base
}

var (
	allBases = []string{"pq", "pgx", "mattn", "modernc", "mysql", "mysql-interpolated"}
	recipes  = []recipe{gooseRecipe, migrateRecipe, atlasRecipe, gormRecipe, entRecipe, bunRecipe}
)

func TestRecipes(t *testing.T) {
	for _, r := range recipes {
		t.Run(r.name, func(t *testing.T) {
			harness.EachProgram(t, func(t *testing.T, b harness.Base) {
				if !slices.Contains(r.bases, b.Name) {
					t.Skip("not a driver of this tool")
				}
				r.convert(t, b)
			})
		})
	}
}

// convert follows the page's steps. The application runs without sqlfence; the fence column and sqlfence's tables are
// added while it runs; the application opens the fenced database; its table changes again.
func (r recipe) convert(t *testing.T, b harness.Base) {
	source := sourceOf(t, b)
	plain := b.Raw(t, source)
	bare := func() *ownedDB { return &ownedDB{b.Raw(t, source), b} }
	var bypassed []sqlfence.Event
	options := []sqlfence.Option{
		harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Ledger()),
		sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { bypassed = append(bypassed, e) }),
	}
	open := func() *sql.DB { return b.Fenced(t, source, options...) }
	bypassing := func(reason string) *ownedDB {
		driverName, dsn := b.DriverName, source

		options := append(slices.Clone(options), sqlfence.WithoutGuards(reason))
		db, err := sqlfence.Open(driverName, dsn, options...)

		return &ownedDB{harness.CloseAtEnd(t, db, err), b}
	}
	must := func(step string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}

	must("version 1", r.up(t.Context(), t, bare(), 1))
	harness.MustExec(t, plain, "INSERT INTO books (id, title) VALUES (1, 'one')")
	for _, again := range []bool{false, true} {
		own := bare()
		switch {
		case again:
		case r.takesNoContext:
			own = bypassing("sqlfence's tables")
		default: // r.own bypasses the guards
			own = &ownedDB{open(), b}
		}
		must("sqlfence's tables", r.own(t.Context(), t, own))
		must("version 2", r.up(t.Context(), t, bare(), 2))
	}
	// Unfenced statements don't name the fence column, and must succeed.
	harness.MustExec(t, plain, "INSERT INTO books (id, title) VALUES (2, 'two')")
	harness.MustExec(t, plain, "UPDATE books SET title = 'three' WHERE id = 1")

	db := open()
	store, err := tokens.New(db)
	must("tokens", err)
	must("setup", store.Setup(t.Context()))
	older, err := store.Issue(t.Context(), "books")
	must("issue", err)
	newer, err := store.Issue(t.Context(), "books")
	must("issue", err)
	held := sqlfence.WithFence(t.Context(), newer)
	_, err = db.ExecContext(held, "UPDATE books SET title = 'fenced' WHERE id = 1")
	must("a fenced write", err)
	bypassed = nil

	if r.takesNoContext {
		must("version 3", r.up(t.Context(), t, bypassing("version 3"), 3))
	} else {
		ctx := t.Context()
		ctx = sqlfence.Bypass(ctx, "version 3")
		must("version 3", r.up(ctx, t, &ownedDB{open(), b}, 3))
	}
	if len(bypassed) == 0 || slices.ContainsFunc(bypassed, func(e sqlfence.Event) bool {
		return e.Kind != sqlfence.Bypassed || e.Reason != "version 3"
	}) {
		t.Errorf("events %+v, want bypassed ones", bypassed)
	}

	// The fence columns and the ledger must be unchanged by version 3.
	_, err = db.ExecContext(sqlfence.WithFence(t.Context(), older), "UPDATE books SET price = 20 WHERE id = 1")
	if !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("an older token: err = %v, want ErrStale", err)
	}
	_, err = db.ExecContext(held, "UPDATE books SET price = 30 WHERE id = 2")
	must("the newest token", err)
	var marks int64
	must("marks", plain.QueryRowContext(t.Context(), "SELECT count(*) FROM books WHERE fence_token = 2").Scan(&marks))
	if marks != 2 {
		t.Errorf("%d rows are marked, want 2", marks)
	}
}

// sourceOf returns the DSN of a fresh database. SQLite's foreign keys are enabled, because ent requires them.
func sourceOf(t *testing.T, b harness.Base) string {
	t.Helper()
	return b.DSN(t) + map[string]string{"mattn": "&_foreign_keys=1", "modernc": "&_pragma=foreign_keys(1)"}[b.Name]
}
