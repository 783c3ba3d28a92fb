package migrations_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"

	"ariga.io/atlas/sql/migrate"
	atlasmysql "ariga.io/atlas/sql/mysql"
	atlaspostgres "ariga.io/atlas/sql/postgres"
	"ariga.io/atlas/sql/schema"
	atlassqlite "ariga.io/atlas/sql/sqlite"

	"github.com/sqlfence/sqlfence"
)

var updateSum = flag.Bool("update-sum", false, "write the atlas.sum of each folder of migrations")

// Atlas refuses a folder whose atlas.sum doesn't match its files.
func TestAtlasSum(t *testing.T) {
	for _, folder := range []string{"../../../../../schema/postgres", "../../../../../schema/sqlite", "../../../../../schema/mysql", "testdata/books"} {
		dir, err := migrate.NewLocalDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := dir.Checksum()
		if err != nil {
			t.Fatal(err)
		}
		if *updateSum {
			if err := migrate.WriteSumFile(dir, sum); err != nil {
				t.Fatal(err)
			}
		}
		if err := migrate.Validate(dir); err != nil {
			t.Errorf("%s: %v; run this test with -update-sum", folder, err)
		}
	}
}

var atlasRecipe = recipe{
	name: "atlas", bases: allBases,
	own: func(ctx context.Context, _ *testing.T, db *ownedDB) error {
		return runAtlas(sqlfence.Bypass(ctx, "sqlfence's tables"), db, schemaDir(db.Base), "sqlfence_versions", "99999")
	},
	up: func(ctx context.Context, _ *testing.T, db *ownedDB, version int) error {
		return runAtlas(ctx, db, "testdata/books", "books_versions", fmt.Sprintf("%05d", version))
	},
}

func runAtlas(ctx context.Context, db *ownedDB, folder, versions, version string) error {
	open := map[sqlfence.Dialect]func(schema.ExecQuerier) (migrate.Driver, error){
		sqlfence.Postgres: atlaspostgres.Open, sqlfence.SQLite: atlassqlite.Open, sqlfence.MySQL: atlasmysql.Open,
	}[db.Dialect]
	driver, err := open(db.DB)
	if err != nil {
		return err
	}
	dir, err := migrate.NewLocalDir(folder)
	if err != nil {
		return err
	}
	executor, err := migrate.NewExecutor(driver, dir, &revisions{db, versions}, migrate.WithAllowDirty(true))
	if err != nil {
		return err
	}
	pending, err := executor.Pending(ctx)
	if errors.Is(err, migrate.ErrNoPendingFiles) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range pending {
		if f.Version() > version {
			break
		}
		if err := executor.Execute(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// revisions records the applied versions in a table. Atlas's command line does the same; its library leaves this to the
// program.
type revisions struct {
	db    *ownedDB
	table string
}

func (r *revisions) Ident() *migrate.TableIdent { return &migrate.TableIdent{Name: r.table} }

func (r *revisions) ReadRevisions(ctx context.Context) (all []*migrate.Revision, err error) {
	if _, err := r.db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+r.table+" (version varchar(50) PRIMARY KEY, applied integer NOT NULL, total integer NOT NULL)"); err != nil {
		return nil, err
	}
	rows, err := r.db.QueryContext(ctx, "SELECT version, applied, total FROM "+r.table+" ORDER BY version")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		revision := &migrate.Revision{Type: migrate.RevisionTypeExecute}
		if err := rows.Scan(&revision.Version, &revision.Applied, &revision.Total); err != nil {
			return nil, err
		}
		all = append(all, revision)
	}
	return all, rows.Err()
}

func (r *revisions) ReadRevision(ctx context.Context, version string) (*migrate.Revision, error) {
	all, err := r.ReadRevisions(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(v *migrate.Revision) bool { return v.Version == version })
	if i < 0 {
		return nil, migrate.ErrRevisionNotExist
	}
	return all[i], nil
}

func (r *revisions) WriteRevision(ctx context.Context, v *migrate.Revision) error {
	_, err := r.db.ExecContext(ctx, "INSERT INTO "+r.table+" (version, applied, total) VALUES "+named(r.db.Base,
		"($1, $2, $3) ON CONFLICT (version) DO UPDATE SET applied = excluded.applied, total = excluded.total",
		"($1, $2, $3) ON CONFLICT (version) DO UPDATE SET applied = excluded.applied, total = excluded.total",
		"(?, ?, ?) ON DUPLICATE KEY UPDATE applied = VALUES(applied), total = VALUES(total)"),
		v.Version, v.Applied, v.Total)
	return err
}

func (r *revisions) DeleteRevision(ctx context.Context, version string) error {
	_, err := r.db.ExecContext(ctx, "DELETE FROM "+r.table+" WHERE version = "+named(r.db.Base, "$1", "$1", "?"), version)
	return err
}
