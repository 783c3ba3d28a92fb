// Package fenced opens an application's database in the mode that the environment names. The parent program copies the
// package into the application; edits in the application only call the package.
//
//	FENCED_MODE     alone, unregistered, row, ledger, stale-row or stale-ledger
//	FENCED_TABLES   the tables to register, separated by commas
//	FENCED_MIGRATES yes if the application calls Migrated or Close after its migrations
//	FENCED_LOG      a file to which each event adds a line
//	FENCED_QUIET    yes if events aren't wanted, because the time is measured
package fenced

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/sqlfence/sqlfence"
)

const (
	resource = "application" // of all tables: one token for the whole application
	column   = "fence_token"
)

// A place is where a database is opened.
type place struct {
	driverName, dsn string
}

var (
	opened   sync.Map // place by *sql.DB
	migrated sync.Map // by place: that Open fences next
)

// Open opens the application's database. A missing table or FENCED_MIGRATES shows that migrations haven't run, and a
// Bypass lets the migrations through. Afterwards Open creates the fence columns or the ledger, and issues a token for
// all writes. A database in memory becomes a file, for other processes to reach.
func Open(driverName, dsn string) (*sql.DB, error) {
	dsn, err := onDisk(dsn)
	if err != nil {
		return nil, err
	}
	at := place{driverName, dsn}
	_, done := migrated.LoadAndDelete(at)
	db, err := at.open(!done && os.Getenv("FENCED_MIGRATES") == "yes")
	if err == nil {
		opened.Store(db, at)
	}
	return db, err
}

// MustOpen is Open for a place that takes no error.
func MustOpen(driverName, dsn string) *sql.DB {
	db, err := Open(driverName, dsn)
	if err != nil {
		panic(fmt.Errorf("fenced: %w", err))
	}
	return db
}

// Close closes a database after its migrations. The application opens it once more.
func Close(db *sql.DB) {
	if at, ok := opened.LoadAndDelete(db); ok {
		migrated.Store(at, true)
	}
	db.Close()
}

// Migrated closes a database after its migrations, and opens it once more.
func Migrated(db *sql.DB) *sql.DB {
	at, ok := opened.Load(db)
	if !ok {
		return db
	}
	limit := db.Stats().MaxOpenConnections
	Close(db)
	db = MustOpen(at.(place).driverName, at.(place).dsn)
	db.SetMaxOpenConns(limit)
	return db
}

// Each executes the statements of a script one by one: several in one text can't be guarded.
func Each(exec func(string, ...any) (sql.Result, error), script string) (r sql.Result, err error) {
	for _, statement := range strings.Split(script, ";") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if r, err = exec(statement); err != nil {
			return r, err
		}
	}
	return r, nil
}

func isAlone() bool {
	mode := os.Getenv("FENCED_MODE")
	return mode == "" || mode == "alone"
}

func (at place) open(migrates bool) (*sql.DB, error) {
	if isAlone() {
		return sql.Open(at.driverName, at.dsn)
	}
	events, err := openLog(os.Getenv("FENCED_LOG"))
	if err != nil {
		return nil, err
	}
	mode := os.Getenv("FENCED_MODE")
	if mode == "unregistered" {
		return sqlfence.Open(at.driverName, at.dsn, events.options(nil)...)
	}
	kind, late := strings.CutPrefix(mode, "stale-")
	done := events.spend()
	m, h, err := at.prepare(kind, migrates, late, events)
	done()
	if err != nil {
		return nil, err
	}
	opts := append(m.tables(), events.options(h)...)
	switch {
	case h == nil:
		return sqlfence.Open(at.driverName, at.dsn, append(opts, sqlfence.WithoutGuards("migrations"))...)
	case late:
		return h.openWatched(at, append(opts, sqlfence.WithTokenSource(h.tokens)))
	}
	return sqlfence.Open(at.driverName, at.dsn, append(opts, sqlfence.WithTokenSource(h.tokens))...)
}

// prepare returns where the tokens are kept, and their holder, which is nil before the
// migrations.
func (at place) prepare(kind string, migrates, late bool, events *log) (*mark, *holder, error) {
	m, err := newMark(at, kind, strings.Split(os.Getenv("FENCED_TABLES"), ","))
	if err != nil || migrates || m.missing() {
		return m, nil, err
	}
	h, err := holderOf(at.dsn, m, events, late)
	return m, h, err
}

// tables returns the options that register the tables.
func (m *mark) tables() (opts []sqlfence.Option) {
	for _, name := range m.names {
		rule := sqlfence.Ledger()
		if m.row {
			rule = sqlfence.RowFence(column)
		}
		opts = append(opts, sqlfence.WithTable(name, rule, sqlfence.Resource(resource)))
	}
	return opts
}

// onDisk returns the DSN of a new file instead of a database in memory.
func onDisk(dsn string) (string, error) {
	if dsn != ":memory:" {
		return dsn, nil
	}
	file, err := os.CreateTemp("", "application*.db") // the parent removes the folder
	if err != nil {
		return "", err
	}
	return file.Name(), file.Close()
}
