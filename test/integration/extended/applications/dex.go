package main

import (
	"net/url"
	"time"
)

// It is from the time before modules, and contexts. What it has for CockroachDB is never called.
var dex = application{
	name:     "dex",
	module:   "github.com/dexidp/dex",
	version:  "v2.13.0+incompatible",
	database: "SQLite (mattn) and PostgreSQL (lib/pq)",
	edits: []edit{
		{"storage/sql/config.go", `	"database/sql"`, `	sql "%s"`},
		{"storage/sql/migrate.go", "import (\n", "import (\n\tfenced \"%s\"\n"},
		{"storage/sql/migrate.go", "	return i, nil\n", "	c.db = fenced.Migrated(c.db)\n	return i, nil\n"},
		{"storage/sql/sql.go", "crdb.ExecuteTx,", "func(*sql.DB, func(*sql.Tx) error) error { panic(crdb.ExecuteTx) },"},
		{"storage/sql/config_test.go", "import (\n", "import (\n\tfenced \"%s\"\n"},
		{"storage/sql/config_test.go", "c.Exec(`", "fenced.Each(c.Exec, `"},
	},
	note: "Its tests take 0.1 s, in which they open 24 databases twice. One of the lines is for a module with an old version that can't be had, and two for tests that empty the tables by several statements in one text.",
	requires: []string{
		"github.com/mattn/go-sqlite3@v1.14.52", "github.com/lib/pq@v1.12.3", "github.com/go-sql-driver/mysql@v1.10.1",
		"github.com/cockroachdb/cockroach-go@v2.0.1+incompatible", "github.com/sirupsen/logrus@v1.9.4",
		"github.com/kylelemons/godebug@v1.1.0", "golang.org/x/crypto@v0.54.0",
	},
	tables: []string{"client", "auth_request", "auth_code", "refresh_token", "password", "keys", "offline_session", "connector"},

	migrates: true,
	tests:    "storage/sql",
	start:    startDex,
}

// startDex makes a database on PostgreSQL; those on SQLite are the tests' own.
func startDex(_ *workspace, env []string) ([]string, func() (time.Duration, error), error) {
	dsn, drop, err := newDatabase("dex")
	if err != nil {
		return nil, nil, err
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, nil, err
	}
	password, _ := u.User.Password()
	env = append(env, "DEX_POSTGRES_HOST="+u.Host, "DEX_POSTGRES_DATABASE="+u.Path[1:], "DEX_POSTGRES_USER="+u.User.Username(), "DEX_POSTGRES_PASSWORD="+password)
	return env, func() (time.Duration, error) { return 0, drop() }, nil
}
