package main

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	_ "github.com/lib/pq"
)

// A suite is a driver's tests.
type suite struct {
	name, module string
	packages     []string                        // that are tested
	rewritten    []string                        // folders in which databases are opened
	wrap         func(dir string, s suite) error // another way to put sqlfence around them; may be nil
	dialect      string                          // sqlfence's name for it
	short        bool
	database     func() ([]string, error) // makes a fresh one; returns variables that name it
	skipped      []leftOut                // in both runs
	leftOut      []leftOut                // in the run with sqlfence
}

// leftOut is a test, or TestX/subtest, that is not run.
type leftOut struct{ test, reason string }

var suites = []suite{
	{
		name: "lib/pq", module: "github.com/lib/pq", dialect: "Postgres",
		packages: []string{"."}, rewritten: []string{".", "internal/pqtest"}, database: pqDatabase,
		skipped: []leftOut{
			{"Example.*", "end the program where there is no server of the driver's own setup"},
			{`TestListener\w+`, "don't use database/sql, and end the program if an event takes longer than 100 ms"},
		},
	},
	{
		name: "pgx/stdlib", module: "github.com/jackc/pgx/v5", dialect: "Postgres",
		packages: []string{"./stdlib"}, rewritten: []string{"stdlib"}, database: pgxDatabase,
	},
	{
		name: "pgx/pgxpool", module: "github.com/jackc/pgx/v5", packages: []string{"./pgxpool"}, wrap: pooled,
		database: pgxDatabase,
		leftOut: []leftOut{
			{"TestPoolAcquireAndConnHijack", "fencepgx hands no connection over; Hijack one of the pool"},
			{"TestPoolBeforeAcquire", "calls AcquireAllIdle, which the pool has"},
			{"TestPoolPrepareConn", "the same"},
			{"TestPoolAcquireAllIdle", "the same"},
			{"TestTraceAcquire", "compares the pool with the tracer's"},
			{"TestTraceRelease", "the same"},
		},
	},
	{
		name: "mattn/go-sqlite3", module: "github.com/mattn/go-sqlite3", dialect: "SQLite",
		packages: []string{"."}, rewritten: []string{"."}, short: true,
	},
	{
		name: "modernc.org/sqlite", module: "modernc.org/sqlite", dialect: "SQLite",
		packages: []string{".", "./vfs"}, rewritten: []string{".", "vfs"}, short: true,
		skipped: []leftOut{
			{"TestConcurrentGoroutines", "takes many minutes where cores are few"},
			{"TestRegisteredFunctions/QueryContext_with_context_expiring", "has waited for ever, alone, on a busy machine"},
			{"TestConcurrentProcesses", "builds and starts other programs, which open the driver alone"},
		},
		leftOut: []leftOut{
			{"TestConnectorDriverIsRegisteredDriver", "compares DB.Driver with the driver's own type"},
			{"TestVtabRegisterModuleHonoursDB", "vtab.RegisterModule looks for the driver in DB.Driver; give it one opened without sqlfence"},
		},
	},
	{
		name: "go-sql-driver/mysql", module: "github.com/go-sql-driver/mysql", dialect: "MySQL",
		packages: []string{"."}, rewritten: []string{"."}, database: mysqlDatabase,
		skipped: []leftOut{{"TestConnectorReturnsTimeout", "panics where the internet can't be reached"}},
	},
}

// left reports whether a test is left out. name is with its package.
func (s suite) left(name string) bool {
	_, test, _ := strings.Cut(name, " ")
	return slices.ContainsFunc(s.leftOut, func(l leftOut) bool {
		return test == l.test || strings.HasPrefix(test, l.test+"/")
	})
}

// environment creates the databases of the tests, and returns the variables that name them. remove removes the
// databases.
func (s suite) environment() (env []string, remove func(), err error) {
	if s.database != nil {
		env, err = s.database()
		return env, func() {}, err
	}
	// /dev/shm is preferred, because tests of SQLite write tens of thousands of transactions to files.
	memory := "/dev/shm"
	if _, err := os.Stat(memory); err != nil {
		memory = ""
	}
	dir, err := os.MkdirTemp(memory, "sqlfence-suites")
	if err != nil {
		return nil, nil, err
	}
	return []string{"TMPDIR=" + dir, "GOTMPDIR=" + os.TempDir()}, func() { _ = os.RemoveAll(dir) }, nil
}

// create drops and creates a database.
func create(driver, dsn, name string) error {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, query := range []string{"DROP DATABASE IF EXISTS ", "CREATE DATABASE "} {
		if _, err := db.Exec(query + name); err != nil {
			return err
		}
	}
	return nil
}

func postgresURL(name string) (*url.URL, error) {
	dsn := os.Getenv("SQLFENCE_POSTGRES_DSN")
	u, err := url.Parse(dsn)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("SQLFENCE_POSTGRES_DSN is no URL with a host: %v", err)
	}
	if err := create("postgres", dsn, name); err != nil {
		return nil, err
	}
	u.Path = "/" + name
	return u, nil
}

func pqDatabase() ([]string, error) {
	u, err := postgresURL("pqgo")
	if err != nil {
		return nil, err
	}
	password, _ := u.User.Password()
	return []string{
		"PGHOST=" + u.Hostname(), "PGPORT=" + u.Port(), "PGUSER=" + u.User.Username(), "PGPASSWORD=" + password,
		"PGDATABASE=pqgo", "PGSSLMODE=disable",
	}, nil
}

func pgxDatabase() ([]string, error) {
	u, err := postgresURL("pgx_test")
	if err != nil {
		return nil, err
	}
	return []string{"PGX_TEST_DATABASE=" + u.String()}, nil
}

func mysqlDatabase() ([]string, error) {
	dsn := os.Getenv("SQLFENCE_MYSQL_DSN")
	c, err := mysql.ParseDSN(dsn)
	if err != nil || dsn == "" {
		return nil, fmt.Errorf("SQLFENCE_MYSQL_DSN: %v", err)
	}
	return []string{
		"MYSQL_TEST_USER=" + c.User, "MYSQL_TEST_PASS=" + c.Passwd, "MYSQL_TEST_PROT=" + c.Net,
		"MYSQL_TEST_ADDR=" + c.Addr, "MYSQL_TEST_DBNAME=gotest",
	}, create("mysql", dsn, "gotest")
}
