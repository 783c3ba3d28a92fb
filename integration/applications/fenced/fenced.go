// Package fenced opens an application's database in one of several ways, which the
// environment names. The parent program copies it into the application, whose own lines
// only call it.
//
//	FENCED_MODE    alone, unregistered, row, ledger, stale-row or stale-ledger
//	FENCED_TABLES  the tables to register, separated by commas
//	FENCED_TWICE   yes if each database is opened for its migrations first, then again
//	FENCED_DIALECT sqlite for a driver that sqlfence doesn't know
//	FENCED_LOG     a file to which each event adds a line
package fenced

import (
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/sqlfence/sqlfence"
)

const (
	resource = "application" // of all tables: one token for the whole application
	column   = "fence_token"
)

// Open opens the application's database. While a table is missing, and each first time
// where the application opens it twice, it is for the migrations, which a Bypass lets through. Opened again after them, it
// is fenced: the fence columns or the ledger are made, and a token is issued for all writes.
func Open(driverName, dsn string) (*sql.DB, error) {
	mode := os.Getenv("FENCED_MODE")
	if mode == "" || mode == "alone" {
		return sql.Open(driverName, dsn)
	}
	events, err := openLog(os.Getenv("FENCED_LOG"))
	if err != nil {
		return nil, err
	}
	if mode == "unregistered" {
		return sqlfence.Open(driverName, dsn, append(forDriver(), events.option(nil))...)
	}
	kind, stale := strings.CutPrefix(mode, "stale-")
	if stale {
		mode = kind
	}
	m, err := newMark(driverName, dsn, mode, strings.Split(os.Getenv("FENCED_TABLES"), ","))
	if err != nil {
		return nil, err
	}
	if isFirst(dsn) || m.missing() {
		opts := append(m.tables(), sqlfence.WithBypass("migrations"), events.option(nil))
		return sqlfence.Open(driverName, dsn, opts...)
	}
	h, err := holderOf(dsn, m, events, stale)
	if err != nil {
		return nil, err
	}
	return sqlfence.Open(driverName, dsn, append(m.tables(), sqlfence.WithTokens(h.tokens), events.option(h))...)
}

// MustOpen is Open for a place that takes no error.
func MustOpen(driverName, dsn string) *sql.DB {
	db, err := Open(driverName, dsn)
	if err != nil {
		panic(fmt.Errorf("fenced: %w", err))
	}
	return db
}

// tables returns the options that register the tables.
func (m *mark) tables() []sqlfence.Option {
	opts := forDriver()
	for _, name := range m.names {
		rule := sqlfence.Ledger()
		if m.row {
			rule = sqlfence.RowFence(column)
		}
		opts = append(opts, sqlfence.WithTable(name, rule, sqlfence.Resource(resource)))
	}
	return slices.Clip(opts)
}

// dialect returns the dialect of a driver that sqlfence doesn't know.
func dialect() (d sqlfence.Dialect, ok bool) {
	name := os.Getenv("FENCED_DIALECT")
	for d := range sqlfence.Dialect(8) {
		if name != "" && strings.EqualFold(d.String(), name) {
			return d, true
		}
	}
	return 0, false
}

// forDriver returns the options that the driver needs.
func forDriver() []sqlfence.Option {
	if d, ok := dialect(); ok {
		return []sqlfence.Option{sqlfence.WithDialect(d)}
	}
	return nil
}

var (
	counting sync.Mutex
	opened   = map[string]int{}
)

// isFirst reports whether the application opens the database for its migrations.
func isFirst(dsn string) bool {
	counting.Lock()
	defer counting.Unlock()
	opened[dsn]++
	return os.Getenv("FENCED_TWICE") == "yes" && opened[dsn]%2 == 1
}
