package migrations_test

import (
	"context"
	"io/fs"
	"os"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
)

var gooseRecipe = recipe{
	name: "goose", bases: allBases,
	own: func(ctx context.Context, t *testing.T, db *ownedDB) error {
		dialect, database := goose.Dialect(named(db.Base, "postgres", "sqlite3", "mysql")), schemaOf(db.Base)

		// sqlfence's files have a separate table of versions.
		folder, err := fs.Sub(schema.Files, database)
		if err != nil {
			return err
		}
		own, err := goose.NewProvider(dialect, db.DB, folder, goose.WithTableName("sqlfence_versions"))
		if err != nil {
			return err
		}
		_, err = own.Up(sqlfence.Bypass(ctx, "sqlfence's tables"))
		return err
	},
	up: func(ctx context.Context, _ *testing.T, db *ownedDB, version int) error {
		p, err := goose.NewProvider(goose.Dialect(named(db.Base, "postgres", "sqlite3", "mysql")), db.DB, os.DirFS("testdata/books"))
		if err != nil {
			return err
		}
		_, err = p.UpTo(ctx, int64(version))
		return err
	},
}
