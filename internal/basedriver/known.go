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

// Known returns the facts about a connection's driver. A wrapper's connection has no known driver.
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

// A Driver has the facts about a known driver. The zero value is for unknown drivers.
type Driver struct {
	Server Server

	// Unfit is the reason why the driver prevents guards; empty if guards work.
	Unfit string

	// RowsUnfit is the reason why guarded statements must not return rows with the driver; empty if they may.
	RowsUnfit string

	// CachesQueries: the driver caches prepared statements of queries without arguments. A token in the SQL would need
	// a new prepared statement each time, at another round trip; so tokens are passed as arguments.
	CachesQueries bool

	// NoOptions: arguments are never options of the execution (see [Options]).
	NoOptions bool

	// SkipsArgCheck: NumInput is always -1, so that database/sql never checks the number of arguments.
	SkipsArgCheck bool

	// MutesEnd: an Exec may report success although its context ended before all of the SQL was executed.
	MutesEnd bool

	// BadConnUnsent: driver.ErrBadConn means that the server can't have executed the statement,
	// as database/sql assumes.
	BadConnUnsent bool

	// Remote: the driver uses a network connection that can be lost, although other drivers of the same database use a
	// file.
	Remote bool

	// Statements is how many guarded statements a connection keeps prepared by default.
	Statements int

	// KeepsRows: prepared statements that return rows can be cached, because in Exec the driver executes such a
	// statement for all rows, not just the first, and for a query it returns the columns' names as they are now.
	KeepsRows bool

	// reach returns the network connection of a driver's connection, and a closer; nil for values that can't be
	// reached.
	reach func(driver.Conn) (net.Conn, closer)
}

// drivers are the known drivers, by the import path of their package.
var drivers = map[string]Driver{
	"github.com/lib/pq":              {Server: PostgreSQL, NoOptions: true, reach: reachPq},
	"github.com/jackc/pgx/v5/stdlib": {Server: PostgreSQL, CachesQueries: true, reach: reachPgx},
	"github.com/mattn/go-sqlite3":    {Server: SQLite, NoOptions: true, Statements: 64},
	"modernc.org/sqlite": {Server: SQLite, NoOptions: true, SkipsArgCheck: true, Statements: 64,
		KeepsRows: true},
	"github.com/go-sql-driver/mysql": {Server: MySQL, NoOptions: true, BadConnUnsent: true}, // since its version 1.4

	// A fork of modernc's driver. Its Prepare only copies the SQL, so a cache saves nothing.
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

// mocks are drivers without a database, which expect each statement, so that no other query may be sent.
var mocks = []string{"github.com/DATA-DOG/go-sqlmock", "github.com/zhashkevych/go-sqlxmock"}

// IsMock reports whether base is a driver or connector of mocks.
func IsMock(base any) bool {
	return base != nil && slices.Contains(mocks, packageOf(reflect.TypeOf(base)))
}

var (
	driverType    = reflect.TypeFor[driver.Driver]()
	connectorType = reflect.TypeFor[driver.Connector]()
)

// find looks only at the types of the fields' values, so that it can use a wrapper's unexported fields.
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

// packageOf returns the import path of a type's package, or for a pointer that of its element's package.
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

// unwrap returns the connection inside a wrapper, such as otelsql's; nil if base is no wrapper.
func unwrap(base any) driver.Conn {
	wrapper, ok := base.(interface{ Raw() driver.Conn })
	if !ok {
		return nil
	}
	return wrapper.Raw()
}

// wrapped is the greatest number of nested wrappers.
const wrapped = 8
