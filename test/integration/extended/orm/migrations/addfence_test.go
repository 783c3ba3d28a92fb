package migrations_test

import (
	"context"
	"database/sql"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	"github.com/pressly/goose/v3"

	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// schema.AddFence adds the fence column while the program is running. A second call changes nothing.
func TestAddFence(t *testing.T) {
	add := func(ctx context.Context, db *sql.DB) error {
		if err := schema.AddFence(ctx, db, "books", "fence_token"); err != nil {
			return err
		}
		return nil
	}
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		source, db := fencedBooks(t, b)
		for _, db := range []*sql.DB{db, b.Raw(t, source)} {
			if err := add(t.Context(), db); err != nil {
				t.Error(err)
			}
		}
		wantMarked(t, db)
	})
}

// The migration tools run AddFenceSQL's statements from a file, next to the program's own migrations.
func TestAddFenceSQLInAFile(t *testing.T) {
	tools := map[string]func(ctx context.Context, db *ownedDB, files fs.FS) error{
		"goose": func(ctx context.Context, db *ownedDB, files fs.FS) error {
			p, err := goose.NewProvider(goose.Dialect(named(db.Base, "postgres", "sqlite3", "mysql")), db.DB, files)
			if err != nil {
				return err
			}
			_, err = p.Up(ctx)
			return err
		},
		"golang-migrate": func(_ context.Context, db *ownedDB, files fs.FS) error {
			return runMigrate(db, files, ".", "", (*migrate.Migrate).Up)
		},
		"bun": func(ctx context.Context, db *ownedDB, files fs.FS) error { return runBun(ctx, db, files) },
	}
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		texts, err := schema.AddFenceSQL(b.Dialect, "books", "fence_token")
		if err != nil {
			t.Fatal(err)
		}
		file := "-- +goose Up\n"
		for _, text := range texts {
			file += "-- +goose StatementBegin\n" + text + ";\n-- +goose StatementEnd\n"
		}
		for name, run := range tools {
			t.Run(name, func(t *testing.T) {
				if name != "goose" && len(texts) > 1 {
					t.Skip("it sends a file of several statements at once, which needs multiStatements")
				}
				source := b.DSN(t)
				plain := b.Raw(t, source)
				harness.MustExec(t, plain, "CREATE TABLE books (id bigint PRIMARY KEY)")
				err := run(t.Context(), &ownedDB{b.Raw(t, source), b}, fstest.MapFS{"00001_fence.up.sql": {Data: []byte(file)}})
				if err != nil {
					t.Fatal(err)
				}
				harness.MustExec(t, plain, "INSERT INTO books (id, fence_token) VALUES (1, 2)")
			})
		}
	})
}
