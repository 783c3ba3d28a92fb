package basedriver

import (
	"database/sql/driver"
	"net"
	"reflect"
	"slices"
	"strings"
)

// Find looks for a known driver in v, a driver or a connector, and in the drivers that v wraps.
func Find(v any) (Driver, bool) {
	return find(reflect.ValueOf(v), wrapped)
}

// Known returns the facts about the driver that a connection is of. A wrapper's is of none.
func Known(base driver.Conn) (Driver, bool) {
	d, ok := drivers[packageOf(reflect.TypeOf(base))]
	return d, ok
}

// A Server is the kind of database that a driver is for.
type Server uint8

// The kinds of databases. The zero Server is none.
const (
	PostgreSQL Server = iota + 1
	SQLite
	MySQL
)

// A Driver has the facts about a known driver. The zero value is for one that isn't.
type Driver struct {
	Server Server

	// Unfit is why nothing can be guarded over the driver; empty for one over which it can.
	Unfit string

	// RowsUnfit is why no guarded statement may return rows over the driver; empty where it may.
	RowsUnfit string

	// CachesQueries: a query without arguments goes through a cache of prepared
	// statements. A token written into its text would be prepared anew each
	// time, at a round trip more; so it is passed as an argument.
	CachesQueries bool

	// NoOptions: arguments are never options of the execution (see [Options]).
	NoOptions bool

	// SkipsArgCheck: NumInput is -1 although placeholders are numbered.
	SkipsArgCheck bool

	// MutesEnd: an Exec may report success although it stopped when its context ended, with
	// none of the text executed or a part of it.
	MutesEnd bool

	// BadConnUnsent: driver.ErrBadConn means that the server can't have executed the statement,
	// as database/sql assumes.
	BadConnUnsent bool

	// Remote: the driver reaches its database over a connection that can be lost, though others of the same
	// kind of database have a file.
	Remote bool

	// Statements is how many guarded statements a connection keeps prepared by default.
	Statements int

	// KeepsRows: statements that return rows can be kept, too. By Exec the driver runs them
	// to their end, and for a query it names the columns that the rows have at that time.
	KeepsRows bool

	// reach returns the network connection of one of the driver's connections, and
	// what tells whether the driver has closed it; nil for what can't be reached.
	reach func(driver.Conn) (net.Conn, closer)
}

// drivers are those that are known, by the import path of their package.
var drivers = map[string]Driver{
	"github.com/lib/pq":              {Server: PostgreSQL, NoOptions: true, reach: reachPq},
	"github.com/jackc/pgx/v5/stdlib": {Server: PostgreSQL, CachesQueries: true, reach: reachPgx},
	"github.com/mattn/go-sqlite3":    {Server: SQLite, NoOptions: true, Statements: 64},
	"modernc.org/sqlite": {Server: SQLite, NoOptions: true, SkipsArgCheck: true, Statements: 64,
		KeepsRows: true},
	"github.com/go-sql-driver/mysql": {Server: MySQL, NoOptions: true, BadConnUnsent: true}, // since its version 1.4

	// A fork of modernc's driver. To prepare a statement it copies the text, so that there is
	// nothing to keep.
	"github.com/glebarez/go-sqlite": {Server: SQLite, NoOptions: true, SkipsArgCheck: true, MutesEnd: true},

	dqlite + "/v3/driver": {Server: SQLite, NoOptions: true, Remote: true, reach: reachDqlite,
		RowsUnfit: "over this driver a query's error has the name of a column in place of the reason, so that a " +
			"refusal can't be told from others; run the write with Exec, without RETURNING"},
	dqlite + "/v2/driver": {Server: SQLite, Unfit: oldDqlite},
	dqlite + "/driver":    {Server: SQLite, Unfit: oldDqlite},

	"github.com/rqlite/gorqlite/stdlib": {Server: SQLite,
		Unfit: "its Begin, Commit and Rollback do nothing, so that each statement commits by itself"},
	"github.com/tursodatabase/go-libsql": {Server: SQLite,
		Unfit: "its errors quote the statement, which has in it what a refusal is told by, " +
			"and it takes no placeholder with a number"},
}

// dqlite is the path of the driver's module, before its version.
const dqlite = "github.com/canonical/go-dqlite"

const oldDqlite = "its nodes may acknowledge an INSERT … RETURNING that they haven't replicated; use version 3"

// mocks are drivers without a database, which expect each statement: there is no server to be asked.
var mocks = []string{"github.com/DATA-DOG/go-sqlmock", "github.com/zhashkevych/go-sqlxmock"}

// IsMock reports whether a driver or connector is of such a driver.
func IsMock(base any) bool {
	return base != nil && slices.Contains(mocks, packageOf(reflect.TypeOf(base)))
}

var (
	driverType    = reflect.TypeFor[driver.Driver]()
	connectorType = reflect.TypeFor[driver.Connector]()
)

// find reads types only, so that fields a wrapper keeps to itself will do.
func find(v reflect.Value, depth int) (Driver, bool) {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	if !v.IsValid() || depth == 0 {
		return Driver{}, false
	}
	if d, ok := drivers[packageOf(v.Type())]; ok {
		return d, true
	}
	if v.Kind() != reflect.Struct {
		return Driver{}, false
	}
	for i := range v.NumField() {
		field := v.Type().Field(i).Type
		if field.Implements(driverType) || field.Implements(connectorType) {
			if d, ok := find(v.Field(i), depth-1); ok {
				return d, true
			}
		}
	}
	return Driver{}, false
}

// packageOf returns the import path of a type's package, or of the type's that it
// points to.
func packageOf(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	path := t.PkgPath()
	if _, vendored, ok := strings.Cut(path, "/vendor/"); ok {
		return vendored
	}
	return path
}

// unwrap returns the connection that a wrapper has beneath it, such as otelsql's; nil if base is none.
func unwrap(base driver.Conn) driver.Conn {
	wrapper, ok := base.(interface{ Raw() driver.Conn })
	if !ok {
		return nil
	}
	return wrapper.Raw()
}

// wrapped is how many wrappers are looked behind.
const wrapped = 8
