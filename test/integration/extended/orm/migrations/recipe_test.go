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

// A recipe is how docs/migrations.md has a tool migrate. The application's table is books;
// its versions are those of testdata/books: 1 creates it, 2 adds the fence column, 3 a price.
type recipe struct {
	name  string
	bases []string

	// own creates sqlfence's own tables.
	own func(ctx context.Context, t *testing.T, db *ownedDB) error

	// up brings books to a version; again, it does nothing.
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

// convert takes an application through the page: it runs without sqlfence; the column and
// the tables are added while it runs; it is fenced; its table is changed again.
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
		default: // r bypasses
			own = &ownedDB{open(), b}
		}
		must("sqlfence's tables", r.own(t.Context(), t, own))
		must("version 2", r.up(t.Context(), t, bare(), 2))
	}
	// What runs without sqlfence doesn't know of the column.
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

	// The marks and the ledger are as they were.
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

// sourceOf returns a fresh database. ent insists on foreign keys.
func sourceOf(t *testing.T, b harness.Base) string {
	t.Helper()
	return b.DSN(t) + map[string]string{"mattn": "&_foreign_keys=1", "modernc": "&_pragma=foreign_keys(1)"}[b.Name]
}
