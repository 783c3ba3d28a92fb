package orm_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	migratemysql "github.com/golang-migrate/migrate/v4/database/mysql"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	migratepq "github.com/golang-migrate/migrate/v4/database/postgres"
	migratemodernc "github.com/golang-migrate/migrate/v4/database/sqlite"
	migratemattn "github.com/golang-migrate/migrate/v4/database/sqlite3"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/pressly/goose/v3"
)

// Migration tools that run SQL files.

const (
	createBooks = "CREATE TABLE books (id bigint PRIMARY KEY, isbn text, title text, fence_token bigint);\n"
	addPrice    = "ALTER TABLE books ADD COLUMN price bigint;\n"
)

var gooseMigrator = migrator{
	name: "goose", modules: []string{"github.com/pressly/goose/v3"}, bases: ormBases,
	create: func(ctx context.Context, _ *testing.T, db *ormDB) error { return gooseUp(ctx, db, 1) },
	change: func(ctx context.Context, _ *testing.T, db *ormDB) error { return gooseUp(ctx, db, 2) },
}

func gooseUp(ctx context.Context, db *ormDB, version int64) error {
	p, err := goose.NewProvider(goose.Dialect(db.dialectName("postgres", "sqlite3", "mysql")), db.DB, fstest.MapFS{
		"1_create_books.sql": {Data: []byte("-- +goose Up\n" + createBooks)},
		"2_add_price.sql":    {Data: []byte("-- +goose Up\n" + addPrice)},
	})
	if err != nil {
		return err
	}
	_, err = p.UpTo(ctx, version)
	return err
}

var migrateMigrator = migrator{
	name: "golang-migrate", modules: []string{"github.com/golang-migrate/migrate/v4"}, bases: ormBases,
	create:     func(_ context.Context, t *testing.T, db *ormDB) error { return migrateUp(t, db, 1) },
	change:     func(_ context.Context, t *testing.T, db *ormDB) error { return migrateUp(t, db, 2) },
	ownContext: true,
}

func migrateUp(t *testing.T, db *ormDB, version uint) error {
	t.Helper()
	instance, err := migrateInstance(db.Name, db.DB)
	if err != nil {
		return err
	}
	files, err := iofs.New(fstest.MapFS{
		"1_create_books.up.sql": {Data: []byte(createBooks)},
		"2_add_price.up.sql":    {Data: []byte(addPrice)},
	}, ".")
	if err != nil {
		return err
	}
	m, err := migrate.NewWithInstance("iofs", files, db.Name, instance)
	if err != nil {
		return err
	}
	defer func() { // m.Close also closes db
		if err := errors.Join(m.Close()); err != nil {
			t.Error(err)
		}
	}()
	// golang-migrate marks the version as dirty after a refused migration, as after any failed migration. Force clears
	// the dirty flag, so that the migration can run again.
	if v, dirty, _ := m.Version(); dirty {
		if err := m.Force(int(v) - 1); err != nil {
			return err
		}
	}
	if err := m.Migrate(version); !errors.Is(err, migrate.ErrNoChange) {
		return err
	}
	return nil
}

func migrateInstance(base string, db *sql.DB) (database.Driver, error) {
	switch base {
	case "pq":
		return migratepq.WithInstance(db, &migratepq.Config{})
	case "pgx":
		return migratepgx.WithInstance(db, &migratepgx.Config{})
	case "mysql", "mysql-interpolated":
		return migratemysql.WithInstance(db, &migratemysql.Config{})
	case "mattn":
		return migratemattn.WithInstance(db, &migratemattn.Config{})
	default:
		return migratemodernc.WithInstance(db, &migratemodernc.Config{})
	}
}
