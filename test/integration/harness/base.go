package harness

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	_ "github.com/mattn/go-sqlite3"
	_ "modernc.org/sqlite"

	"github.com/sqlfence/sqlfence"
)

// A Base is a driver that sqlfence is put around.
type Base struct {
	Name       string // of the subtests
	DriverName string // as registered with database/sql
	Dialect    sqlfence.Dialect

	// Statements is how many statements a fenced connection of SQLite's keeps: 0 is for the
	// driver's default, and less for none.
	Statements int

	// OneAtATime: a connection is given up on which something is sent while rows are open.
	OneAtATime bool

	// OneLevel keeps to the isolation level that the database itself begins with, for what has
	// no part in isolation.
	OneLevel bool

	native bool // fenced by package fencepgx

	// AsWritten sends a test's statements without translation into the database's SQL.
	AsWritten bool
}

// Bases are the drivers that the tests of guards run on.
var Bases = []Base{
	{Name: "pq", DriverName: "postgres", Dialect: sqlfence.Postgres},
	{Name: "pgx", DriverName: "pgx", Dialect: sqlfence.Postgres, OneAtATime: true},
	{Name: "mattn", DriverName: "sqlite3", Dialect: sqlfence.SQLite},
	{Name: "modernc", DriverName: "sqlite", Dialect: sqlfence.SQLite},
	{Name: "mysql", DriverName: "mysql", Dialect: sqlfence.MySQL, OneAtATime: true},
}

// Stores are the drivers of the databases in which sqlfence's packages keep their tables. One driver counts the rows
// that an UPDATE finds, and not the rows that change.
var Stores = append(slices.Clone(Bases), Base{Name: "mysql-found-rows", DriverName: "mysql", Dialect: sqlfence.MySQL, OneLevel: true, OneAtATime: true})

// databases create a fresh database for a base, by its name, and return the data source
// name.
var databases = map[string]func(testing.TB, Base) string{
	"pq":       func(t testing.TB, _ Base) string { return postgresSchema(t) },
	"pgx":      func(t testing.TB, _ Base) string { return postgresSchema(t) },
	"fencepgx": func(t testing.TB, _ Base) string { return postgresSchema(t) },
	"mysql":    func(t testing.TB, _ Base) string { return MySQLDatabase(t) },
	"mysql-found-rows": func(t testing.TB, _ Base) string {
		return MySQLWith(t, MySQLDatabase(t), func(c *mysql.Config) { c.ClientFoundRows = true })
	},
	"mysql-interpolated": func(t testing.TB, _ Base) string {
		return MySQLWith(t, MySQLDatabase(t), func(c *mysql.Config) { c.ClientFoundRows, c.InterpolateParams = true, true })
	},
	"mysql-no-mode": func(t testing.TB, _ Base) string { return mysqlInMode(t, "''") },
	"mysql-ansi": func(t testing.TB, _ Base) string {
		return mysqlInMode(t, "'ANSI,STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE'")
	},
	"mattn": func(t testing.TB, b Base) string {
		return sqliteFile(t, b, "_busy_timeout="+busyTimeout+"&_journal_mode=WAL")
	},
	"modernc": func(t testing.TB, b Base) string {
		return sqliteFile(t, b, "_pragma=busy_timeout("+busyTimeout+")&_pragma=journal_mode(WAL)")
	},
}

// otherwise are, by the name of one of Bases, those that are set up in another way: where
// arguments are written into the text and found rows counted, and by what sessions differ.
var otherwise = map[string][]Base{
	"mysql": {
		{Name: "mysql-interpolated", DriverName: "mysql", Dialect: sqlfence.MySQL, OneLevel: true, OneAtATime: true},
		{Name: "mysql-no-mode", DriverName: "mysql", Dialect: sqlfence.MySQL, OneAtATime: true},
		{Name: "mysql-ansi", DriverName: "mysql", Dialect: sqlfence.MySQL, OneLevel: true, OneAtATime: true},
	},
}

// BothCaches has [EachBase] run each test on SQLite a second time, without a statement cache; and
// on drivers that are set up in another way. It is for a TestMain.
func BothCaches() { bothCaches = true }

var bothCaches bool

// caches returns the base as it is and, where both are wanted, without a statement cache.
func (b Base) caches() []Base {
	if !bothCaches || testing.Short() {
		return []Base{b}
	}
	all := []Base{b}
	if !b.Networked() {
		b.Statements = -1
		all = append(all, b)
	}
	return append(all, otherwise[b.Name]...)
}

// EachBase runs test as a subtest for every base. Without a PostgreSQL server its
// bases are skipped, or fail where the caller of the tests insists.
func EachBase(t *testing.T, test func(t *testing.T, b Base)) {
	t.Helper()
	each(t, Bases, test)
}

// EachDriver is EachBase for what sqlfence has no part in: once a driver.
func EachDriver(t *testing.T, test func(t *testing.T, b Base)) {
	t.Helper()
	EachBase(t, func(t *testing.T, b Base) {
		if !slices.Contains(Bases, b) {
			t.Skip("the driver is tested as it is by default")
		}
		test(t, b)
	})
}

// EachStore is EachBase for the Stores.
func EachStore(t *testing.T, test func(t *testing.T, b Base)) {
	t.Helper()
	each(t, Stores, test)
}

// EachProgram is EachBase for what programs and their libraries open: also [MySQLInterpolated],
// and with texts as they are written.
func EachProgram(t *testing.T, test func(t *testing.T, b Base)) {
	t.Helper()
	each(t, programs, test)
}

// each runs test for the bases. A short run uses one driver a database, with default settings. Differences between
// drivers have separate test packages, which name their drivers.
func each(t *testing.T, bases []Base, test func(t *testing.T, b Base)) {
	t.Helper()
	for _, b := range Chosen(bases) {
		for _, b := range b.caches() {
			name := b.Name
			if b.Statements != 0 {
				name += fmt.Sprintf(" keeping %d", max(b.Statements, 0))
			}
			t.Run(name, func(t *testing.T) {
				b.dialect(t).need(t) // skips or fails here, before the test has begun
				test(t, b)
			})
		}
	}
}

// Chosen are those of the bases that a test runs on: in a short run one of each database.
func Chosen(all []Base) []Base {
	if !testing.Short() {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(b Base) bool { return !b.IsUsual() })
}

// IsUsual reports whether the base is the one of its database that a short run keeps to.
func (b Base) IsUsual() bool { return b.Name == dialects[b.Dialect].usual }

// DSN returns the data source name of a fresh, empty database, which is gone
// when the test ends: a schema of its own in PostgreSQL, a database in MySQL, a
// file in SQLite.
func (b Base) DSN(t testing.TB) string {
	t.Helper()
	fresh := databases[b.Name]
	if fresh == nil {
		t.Fatalf("base %q has no data source name", b.Name)
	}
	return fresh(t, b)
}

// Raw opens the database with the base driver alone.
func (b Base) Raw(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(b.DriverName, dsn)
	if translate := b.translation(t); translate != nil && err == nil {
		db, err = openTranslated(db.Driver(), dsn, translate)
	}
	return CloseAtEnd(t, db, err)
}

// Fenced opens the database with sqlfence around the base driver.
func (b Base) Fenced(t testing.TB, dsn string, opts ...sqlfence.Option) *sql.DB {
	t.Helper()
	if translate := b.translation(t); translate != nil {
		return CloseAtEnd(t, b.fenceTranslated(t, b.Raw(t, dsn).Driver(), dsn, translate, opts), nil)
	}
	if b.native {
		db, err := b.openNative(t, dsn, nil, opts)
		return CloseAtEnd(t, db, err)
	}
	db, err := sqlfence.Open(b.DriverName, dsn, b.options(opts)...)
	return CloseAtEnd(t, db, err)
}

// options returns the options of a fenced database, those of the test last.
func (b Base) options(opts []sqlfence.Option) []sqlfence.Option {
	if b.Statements == 0 {
		return opts
	}
	return append([]sqlfence.Option{sqlfence.WithStatementCache(max(b.Statements, 0))}, opts...)
}

// Networked reports whether the database is reached over the network.
func (b Base) Networked() bool { return dialects[b.Dialect].networked }

// IsPgx reports whether the driver is pgx, which has options in front of the arguments.
func (b Base) IsPgx() bool { return b.DriverName == "pgx" }

// AtLevel returns a data source name whose sessions are at an isolation level.
func (b Base) AtLevel(t testing.TB, dsn string, level sql.IsolationLevel) string {
	t.Helper()
	return b.dialect(t).atLevel(t, dsn, level)
}

// Counted is Fenced with a counter between sqlfence and the base driver, which
// records what sqlfence sends to the database, but for what a first connection asks.
func (b Base) Counted(t testing.TB, dsn string, opts ...sqlfence.Option) (*sql.DB, *Counter) {
	t.Helper()
	c := new(Counter)
	opts = append([]sqlfence.Option{sqlfence.WithDialect(b.Dialect)}, opts...)
	var db *sql.DB
	var err error
	switch translate := b.translation(t); {
	case translate != nil:
		db = b.fenceTranslated(t, b.Counting(t, dsn, c).Counting, dsn, translate, opts)
	case b.native:
		if db, err = b.openNative(t, dsn, c, opts); err != nil {
			t.Fatal(err)
		}
	default:
		if db, err = sqlfence.OpenDB(b.Counting(t, dsn, c), b.options(opts)...); err != nil {
			t.Fatal(err)
		}
	}
	CloseAtEnd(t, db, nil)
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	c.Reset()
	return db, c
}

// Counting returns a connector of the base driver; c records what reaches it.
func (b Base) Counting(t testing.TB, dsn string, c *Counter) *CountingConnector {
	t.Helper()
	d := b.Raw(t, dsn).Driver() // opens no connection
	return &CountingConnector{CountingDriver{d, c}, dsn}
}

// CloseAtEnd returns db, which is closed when the test ends. A non-nil err, from opening db, ends the test.
func CloseAtEnd(t testing.TB, db *sql.DB, err error) *sql.DB {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(64) // a session of PostgreSQL's costs 20 ms of CPU, and by default a pool keeps two
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}
