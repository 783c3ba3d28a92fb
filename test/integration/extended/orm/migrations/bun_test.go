package migrations_test

import (
	"context"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"github.com/uptrace/bun/migrate"
	"github.com/uptrace/bun/schema"

	"github.com/sqlfence/sqlfence"
	own "github.com/sqlfence/sqlfence/schema"
)

var bunRecipe = recipe{
	name: "bun", bases: allBases,
	own: func(ctx context.Context, t *testing.T, db *ownedDB) error {
		folder, err := fs.Sub(own.Files, schemaOf(db.Base))
		if err != nil {
			return err
		}
		return runBun(sqlfence.Bypass(ctx, "sqlfence's tables"), db, folder,
			migrate.WithTableName("sqlfence_versions"), migrate.WithLocksTableName("sqlfence_locks"))
	},
	up: func(ctx context.Context, t *testing.T, db *ownedDB, version int) error {
		return runBun(ctx, db, booksUpTo(t, version))
	},
}

func runBun(ctx context.Context, db *ownedDB, files fs.FS, opts ...migrate.MigratorOption) error {
	var dialect schema.Dialect = sqlitedialect.New()
	switch db.Dialect {
	case sqlfence.Postgres:
		dialect = pgdialect.New()
	case sqlfence.MySQL:
		dialect = mysqldialect.New()
	}
	migrations := migrate.NewMigrations()
	if err := migrations.Discover(files); err != nil {
		return err
	}
	m := migrate.NewMigrator(bun.NewDB(db.DB, dialect), migrations, opts...)
	if err := m.Init(ctx); err != nil {
		return err
	}
	_, err := m.Migrate(ctx)
	return err
}

// booksUpTo returns the first version files of testdata/books, because bun runs every file that it receives.
func booksUpTo(t *testing.T, version int) fs.FS {
	files := fstest.MapFS{}
	names, texts := schemaFiles(t, "testdata/books")
	for i := range version {
		files[names[i]] = &fstest.MapFile{Data: []byte(texts[i])}
	}
	return files
}
