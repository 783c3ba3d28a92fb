package migrations_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	migratemysql "github.com/golang-migrate/migrate/v4/database/mysql"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	migratepq "github.com/golang-migrate/migrate/v4/database/postgres"
	migratemodernc "github.com/golang-migrate/migrate/v4/database/sqlite"
	migratemattn "github.com/golang-migrate/migrate/v4/database/sqlite3"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"github.com/sqlfence/sqlfence/schema"
)

var migrateRecipe = recipe{
	name: "golang-migrate", bases: allBases,
	own: func(_ context.Context, t *testing.T, db *ownedDB) error {
		return runMigrate(db, schema.Files, schemaOf(db.Base), "sqlfence_versions", (*migrate.Migrate).Up)
	},
	up: func(_ context.Context, t *testing.T, db *ownedDB, version int) error {
		return runMigrate(db, os.DirFS("testdata"), "books", "", func(m *migrate.Migrate) error { return m.Migrate(uint(version)) })
	},
	takesNoContext: true,
}

// runMigrate runs golang-migrate, which closes db at the end.
func runMigrate(db *ownedDB, folders fs.FS, folder, versions string, up func(*migrate.Migrate) error) error {
	instance, err := instances[db.Name](db.DB, versions)
	if err != nil {
		return err
	}
	files, err := iofs.New(folders, folder)
	if err != nil {
		return err
	}
	m, err := migrate.NewWithInstance("iofs", files, db.Name, instance)
	if err != nil {
		return err
	}
	if err = up(m); errors.Is(err, migrate.ErrNoChange) {
		err = nil
	}
	fromFiles, fromDatabase := m.Close()
	return errors.Join(err, fromFiles, fromDatabase)
}

// instances create golang-migrate's driver for each base. versions is the name of its version table.
var instances = map[string]func(db *sql.DB, versions string) (database.Driver, error){
	"pq": func(db *sql.DB, versions string) (database.Driver, error) {
		return migratepq.WithInstance(db, &migratepq.Config{MigrationsTable: versions})
	},
	"pgx": func(db *sql.DB, versions string) (database.Driver, error) {
		instance, err := migratepgx.WithInstance(db, &migratepgx.Config{MigrationsTable: versions})
		return instance, err
	},
	"mattn": func(db *sql.DB, versions string) (database.Driver, error) {
		return migratemattn.WithInstance(db, &migratemattn.Config{MigrationsTable: versions})
	},
	"mysql":              migrateMySQL,
	"mysql-interpolated": migrateMySQL,
	"modernc": func(db *sql.DB, versions string) (database.Driver, error) {
		return migratemodernc.WithInstance(db, &migratemodernc.Config{MigrationsTable: versions})
	},
}

func migrateMySQL(db *sql.DB, versions string) (database.Driver, error) {
	return migratemysql.WithInstance(db, &migratemysql.Config{MigrationsTable: versions})
}
