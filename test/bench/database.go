package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	_ "github.com/mattn/go-sqlite3"
	_ "modernc.org/sqlite"

	"github.com/sqlfence/sqlfence"
)

// A target is a driver and a database to measure on.
type target struct {
	name       string
	driver     string // as registered with database/sql
	dialect    sqlfence.Dialect
	durability string
	bare       bool   // placeholders are ?, else $1
	moment     string // type of a point in time
	alone      bool   // the database belongs to one connection

	// fresh creates an empty database, where the stage is the one that leads, and
	// returns its data source name.
	fresh func(s *stage) (string, error)
}

var (
	pgx = target{name: "pgx", driver: "pgx", dialect: sqlfence.Postgres, durability: postgresDurability, moment: "timestamptz", fresh: freshSchema}
	pq  = target{name: "lib/pq", driver: "postgres", dialect: sqlfence.Postgres, durability: postgresDurability, moment: "timestamptz", fresh: freshSchema}

	mattn       = sqliteTarget("mattn", "sqlite3", "in memory", "none", func(*stage) (string, error) { return ":memory:", nil })
	modernc     = sqliteTarget("modernc", "sqlite", "in memory", "none", func(*stage) (string, error) { return ":memory:", nil })
	mattnNormal = sqliteTarget("mattn", "sqlite3", "WAL NORMAL", "a crash of the machine loses the last commits: synchronous NORMAL",
		freshFile("_busy_timeout=60000&_txlock=immediate&_journal_mode=WAL&_synchronous=NORMAL"))
	mattnFull = sqliteTarget("mattn", "sqlite3", "WAL FULL", "fsync at commit: synchronous FULL",
		freshFile("_busy_timeout=60000&_txlock=immediate&_journal_mode=WAL&_synchronous=FULL"))
	moderncFull = sqliteTarget("modernc", "sqlite", "WAL FULL", "fsync at commit: synchronous FULL",
		freshFile("_txlock=immediate&_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"))
)

func sqliteTarget(name, driver, storage, durability string, fresh func(*stage) (string, error)) target {
	return target{
		name: name + ", " + storage, driver: driver, dialect: sqlfence.SQLite, durability: durability,
		bare: true, moment: "integer", alone: storage == "in memory", fresh: fresh,
	}
}

// freshFile returns a function that names a file in the servers' folder, which is
// removed with it.
func freshFile(params string) func(*stage) (string, error) {
	return func(s *stage) (string, error) {
		file := filepath.Join(s.servers.Folder, s.place+".db")
		s.cleanup(func() {
			if s.lead {
				for _, suffix := range []string{"", "-wal", "-shm"} {
					_ = os.Remove(file + suffix)
				}
			}
		})
		return "file:" + file + "?" + params, nil
	}
}

// freshSchema creates a schema, which is the search path of the connections.
func freshSchema(s *stage) (string, error) {
	server, err := s.servers.Database.at(s, "PostgreSQL")
	if err != nil {
		return "", err
	}
	if s.lead {
		admin, err := sql.Open("pgx", s.servers.Database.Near)
		if err != nil {
			return "", err
		}
		s.cleanup(func() {
			_, _ = admin.Exec("DROP SCHEMA IF EXISTS " + s.place + " CASCADE")
			admin.Close()
		})
		if _, err := admin.Exec("CREATE SCHEMA " + s.place); err != nil {
			return "", err
		}
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	q := u.Query()
	q.Set("search_path", s.place)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// slot returns the placeholder of the argument with the number n, which comes n-th.
func (t target) slot(n int) string {
	if t.bare {
		return "?"
	}
	return "$" + strconv.Itoa(n)
}

// A wrapping opens a database in some way.
type wrapping func(t target, dsn string) (*sql.DB, error)

// bare is the driver alone.
func bare(t target, dsn string) (*sql.DB, error) { return sql.Open(t.driver, dsn) }

// fenced is sqlfence with the options.
func fenced(options ...sqlfence.Option) wrapping {
	return func(t target, dsn string) (*sql.DB, error) { return sqlfence.Open(t.driver, dsn, options...) }
}

// open opens a fresh database with a connection for each caller.
func (t target) open(s *stage, wrap wrapping) (*sql.DB, error) {
	dsn, err := t.fresh(s)
	if err != nil {
		return nil, err
	}
	db, err := wrap(t, dsn)
	if err != nil {
		return nil, err
	}
	s.cleanup(func() { db.Close() })
	connections := s.callers
	if t.alone {
		connections = 1
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// setUp executes statements that bypass the fence.
func setUp(db *sql.DB, queries ...string) error {
	ctx := sqlfence.Bypass(context.Background(), "set-up of a benchmark")
	for _, query := range queries {
		if _, err := db.ExecContext(ctx, query); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	return nil
}
