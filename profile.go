package sqlfence

import (
	"database/sql/driver"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
)

// A profile has the facts about a base driver and its database.
type profile struct {
	database

	// cachesQueries: a query without arguments goes through a cache of prepared
	// statements. A token written into its text would be prepared anew each
	// time, at a round trip more; so it is passed as an argument.
	cachesQueries bool

	// noOptions: arguments are never options of the execution (see driverOptions).
	noOptions bool

	// skipsArgCheck: NumInput is -1 although placeholders are numbered.
	skipsArgCheck bool

	// mutesEnd: an Exec may report success although it stopped when its context ended, with
	// none of the text executed or a part of it.
	mutesEnd bool

	// badConnUnsent: driver.ErrBadConn means what database/sql takes it for, that the server can't have
	// executed the statement.
	badConnUnsent bool

	// statements is how many guarded statements a connection keeps prepared, unless
	// [WithStatementCache] says otherwise.
	statements int

	// keepsRows: statements that return rows can be kept, too. By Exec the driver runs them
	// to their end, and for a query it names the columns that the rows have at that time.
	keepsRows bool

	// answers returns what tells whether a connection of the driver's is in the middle of
	// an answer, where a prepared statement must not be touched; nil for a connection
	// that can keep none. For a driver without this field it doesn't matter.
	answers func(driver.Conn) func() bool

	// reach returns the network connection of one of the driver's connections, and
	// what tells whether the driver has closed it; nil for what can't be reached.
	reach func(driver.Conn) (net.Conn, closer)
}

// profiles are the drivers that are known, by the import path of their package.
var profiles = map[string]profile{
	"github.com/lib/pq":              {database: postgres{}, noOptions: true, reach: reachPq, answers: answersPq},
	"github.com/jackc/pgx/v5/stdlib": {database: postgres{}, cachesQueries: true, reach: reachPgx, keepsRows: true, answers: answersPgx},
	"github.com/mattn/go-sqlite3":    {database: sqlite{}, noOptions: true, statements: 64},
	"modernc.org/sqlite":             {database: sqlite{}, noOptions: true, skipsArgCheck: true, statements: 64, keepsRows: true},
	"github.com/go-sql-driver/mysql": {database: mysql{}, noOptions: true, badConnUnsent: true}, // since its version 1.4

	// A fork of modernc's driver. To prepare a statement it copies the text, so that there is
	// nothing to keep.
	"github.com/glebarez/go-sqlite": {database: sqlite{}, noOptions: true, skipsArgCheck: true, mutesEnd: true},
}

// mocks are drivers without a database, which expect each statement: there is no server to be asked.
var mocks = []string{"github.com/DATA-DOG/go-sqlmock", "github.com/zhashkevych/go-sqlxmock"}

// isMock reports whether a base is of such a driver.
func isMock(base any) bool {
	return base != nil && slices.Contains(mocks, packageOf(reflect.TypeOf(base)))
}

// DialectOf returns the dialect of a driver, fenced or not, also behind a wrapper such
// as otelsql's. If sqlfence doesn't know the driver, it returns an untyped error. It is for
// packages that send SQL of their own through a *sql.DB.
func DialectOf(d driver.Driver) (Dialect, error) {
	if f, ok := d.(*fencedDriver); ok {
		return f.settings.profile.dialect(), nil
	}
	p, ok := profileOf(d)
	if !ok {
		return 0, fmt.Errorf("sqlfence: unknown driver %T; name its dialect with WithDialect", d)
	}
	return p.dialect(), nil
}

// OwnSchema is the schema of sqlfence's own tables by [WithSchema]; empty without. Packages with SQL of their own
// ask for it.
func (d *fencedDriver) OwnSchema() string { return d.settings.schema }

// resolve returns the profile for a driver. The options may name its dialect, as d;
// 0 is for none.
func resolve(d Dialect, bases ...any) (profile, error) {
	for _, base := range bases {
		p, ok := profileOf(base)
		switch {
		case !ok:
		case d != 0 && d != p.dialect():
			return profile{}, fmt.Errorf("the driver %T speaks %v, not %v", base, p.dialect(), d)
		default:
			return p, nil
		}
	}
	db, ok := databaseOf(d)
	if !ok {
		return profile{}, fmt.Errorf("unknown driver %T; name its dialect with WithDialect", bases[0])
	}
	return profile{database: db}, nil
}

// profileOf looks for a known driver in v and in the drivers that v wraps.
func profileOf(v any) (profile, bool) {
	return findProfile(reflect.ValueOf(v), 8)
}

var (
	driverType    = reflect.TypeFor[driver.Driver]()
	connectorType = reflect.TypeFor[driver.Connector]()
)

// findProfile reads types only, so that fields a wrapper keeps to itself will do.
func findProfile(v reflect.Value, depth int) (profile, bool) {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	if !v.IsValid() || depth == 0 {
		return profile{}, false
	}
	if p, ok := profiles[packageOf(v.Type())]; ok {
		return p, true
	}
	if v.Kind() != reflect.Struct {
		return profile{}, false
	}
	for i := range v.NumField() {
		field := v.Type().Field(i).Type
		if field.Implements(driverType) || field.Implements(connectorType) {
			if p, ok := findProfile(v.Field(i), depth-1); ok {
				return p, true
			}
		}
	}
	return profile{}, false
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
