package migrations_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"entgo.io/ent/dialect/sql/schema"
	"entgo.io/ent/schema/field"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Migrations that drop the fence column, and model declarations that prevent the loss.

const addFence = "ALTER TABLE books ADD COLUMN fence_token bigint NOT NULL DEFAULT 0"

// fencedBooks returns a database with one row whose fence column holds 5.
func fencedBooks(t *testing.T, b harness.Base) (source string, db *sql.DB) {
	t.Helper()
	source = sourceOf(t, b)
	if err := entRecipe.up(t.Context(), t, &ownedDB{b.Raw(t, source), b}, 1); err != nil {
		t.Fatal(err)
	}
	db = b.Fenced(t, source, harness.Books(sqlfence.RowFence("fence_token")))
	for _, query := range []string{addFence, "INSERT INTO books (id, title, fence_token) VALUES (1, 'one', 5)"} {
		harness.MustExec(t, b.Raw(t, source), query)
	}
	return source, db
}

// A keeping is a migration of books. servers and sqlite report whether the fence column exists after the migration.
type keeping struct {
	name            string
	columns         []*schema.Column // in addition to the id
	opts            []schema.MigrateOption
	servers, sqlite bool // servers are PostgreSQL and MySQL
}

var (
	title    = &schema.Column{Name: "title", Type: field.TypeString}
	changed  = &schema.Column{Name: "title", Type: field.TypeString, Nullable: true}
	declared = &schema.Column{Name: "fence_token", Type: field.TypeInt64, Nullable: true}
	drops    = []schema.MigrateOption{schema.WithDropColumn(true)}

	keepings = []keeping{
		{"not declared, nothing to do", []*schema.Column{title}, nil, true, true},
		{"not declared, another column changes", []*schema.Column{changed}, nil, true, false},
		{"not declared, with WithDropColumn", []*schema.Column{title}, drops, false, false},
		{"declared, nothing to do", []*schema.Column{title, declared}, nil, true, true},
		{"declared, another column changes", []*schema.Column{changed, declared}, nil, true, true},
		{"declared, with WithDropColumn", []*schema.Column{title, declared}, drops, true, true},
	}
)

// ent drops a column that its schema doesn't declare if WithDropColumn is set. On SQLite ent also drops such a column
// whenever it changes the table, because it creates a new table and copies the declared columns.
func TestEntKeepsWhatIsDeclared(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		for _, k := range keepings {
			t.Run(k.name, func(t *testing.T) {
				source, db := fencedBooks(t, b)
				table := entTable(append([]*schema.Column{{Name: "id", Type: field.TypeInt64, Increment: true}}, k.columns...)...)
				ctx := sqlfence.Bypass(t.Context(), "ent")
				if err := runEnt(ctx, &ownedDB{b.Fenced(t, source, harness.Books(sqlfence.RowFence("fence_token"))), b}, table, k.opts...); err != nil {
					t.Fatal(err)
				}
				if named(b, "servers", "sqlite", "servers") == "servers" && k.servers || named(b, "servers", "sqlite", "servers") == "sqlite" && k.sqlite {
					wantMarked(t, db)
				} else {
					wantLost(t, b, source, db)
				}
			})
		}
	})
}

// wantMarked fails the test unless an older token is stale and a newer token passes.
func wantMarked(t *testing.T, db *sql.DB) {
	t.Helper()
	_, err := db.ExecContext(harness.Holding(t, 4), "UPDATE books SET title = 'late' WHERE id = 1")
	harness.WantStale(t, err, 4, 5)
	if _, err := db.ExecContext(harness.Holding(t, 6), "UPDATE books SET title = 'new' WHERE id = 1"); err != nil {
		t.Error(err)
	}
}

// wantLost fails the test unless a write returns a SetupError with the SQL that adds the fence column. After this SQL
// has run an older token passes, because the stored tokens are lost.
func wantLost(t *testing.T, b harness.Base, source string, db *sql.DB) {
	t.Helper()
	write := func(ctx context.Context) error {
		_, err := db.ExecContext(ctx, "UPDATE books SET title = 'late' WHERE id = 1")
		return err
	}
	err := write(harness.Holding(t, 6))
	var setup *sqlfence.SetupError
	if !errors.As(err, &setup) || !strings.EqualFold(setup.SQL, addFence) {
		t.Fatalf("err = %v, want a SetupError with %q", err, addFence)
	}
	harness.MustExec(t, b.Raw(t, source), setup.SQL)
	if err := write(harness.Holding(t, 4)); err != nil {
		t.Errorf("err = %v: an older token passes where the marks are lost", err)
	}
}

// A migration that rebuilds a table, SQLite's way of changing one, keeps the stored tokens only if it copies the fence
// column.
func TestRebuildCopiesTheColumn(t *testing.T) {
	for name, rebuild := range map[string]string{
		"copied": `
CREATE TABLE books_new (id bigint PRIMARY KEY, title text NOT NULL CHECK (title <> ''), fence_token bigint NOT NULL DEFAULT 0);
INSERT INTO books_new (id, title, fence_token) SELECT id, title, fence_token FROM books;
DROP TABLE books;
ALTER TABLE books_new RENAME TO books;
`,
		"left out": `
CREATE TABLE books_new (id bigint PRIMARY KEY, title text NOT NULL CHECK (title <> ''));
INSERT INTO books_new (id, title) SELECT id, title FROM books;
DROP TABLE books;
ALTER TABLE books_new RENAME TO books;
`,
	} {
		t.Run(name, func(t *testing.T) {
			harness.EachProgram(t, func(t *testing.T, b harness.Base) {
				source, db := fencedBooks(t, b)
				for _, query := range strings.Split(strings.TrimSuffix(rebuild, ";\n"), ";\n") {
					harness.MustExec(t, b.Raw(t, source), query)
				}
				if name == "copied" {
					wantMarked(t, db)
				} else {
					wantLost(t, b, source, db)
				}
			})
		})
	}
}

// An unfenced program inserts a row without a column list. PostgreSQL fills the fence column with its default; SQLite
// and MySQL require a value for it.
func TestInsertWithoutColumns(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		source, _ := fencedBooks(t, b)
		_, err := b.Raw(t, source).ExecContext(t.Context(), "INSERT INTO books VALUES (2, 'two')")
		if want := named(b, "", "has 3 columns but 2 values were supplied", "Column count doesn't match value count"); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("err = %v, want %q", err, want)
		}
	})
}
