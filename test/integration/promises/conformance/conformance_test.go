package conformance_test

import (
	"context"
	"database/sql/driver"
	"maps"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/conformance"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The conformance suite runs on every driver, in each of its modes that change the sent texts. Its results are the page
// docs/data/compatibility.md.

// A target is a driver in one of its modes.
type target struct {
	name   string // of the subtest and in the table
	base   string // as in bases
	module string
	params string // of the data source name, as in a URL
	// stranger wraps the driver in a type unknown to sqlfence.
	stranger bool
	skip     map[string]string
}

var targets = []target{
	{name: "pq", base: "pq", module: "github.com/lib/pq"},
	{name: "pgx", base: "pgx", module: "github.com/jackc/pgx/v5"},
	{name: "pgx cache_describe", base: "pgx", module: "github.com/jackc/pgx/v5", params: "default_query_exec_mode=cache_describe"},
	{name: "pgx describe_exec", base: "pgx", module: "github.com/jackc/pgx/v5", params: "default_query_exec_mode=describe_exec&statement_cache_capacity=0&description_cache_capacity=0"},
	{name: "pgx exec", base: "pgx", module: "github.com/jackc/pgx/v5", params: "default_query_exec_mode=exec"},
	{name: "pgx simple_protocol", base: "pgx", module: "github.com/jackc/pgx/v5", params: "default_query_exec_mode=simple_protocol"},
	{name: "mattn", base: "mattn", module: "github.com/mattn/go-sqlite3", params: "_synchronous=OFF"},
	{name: "modernc", base: "modernc", module: "modernc.org/sqlite", params: "_pragma=synchronous(OFF)", skip: modernc},
	{name: "mysql", base: "mysql", module: "github.com/go-sql-driver/mysql"},
	{name: "mysql interpolateParams", base: "mysql", module: "github.com/go-sql-driver/mysql", params: "interpolateParams=true"},
	{name: "unknown, PostgreSQL", base: "pgx", stranger: true},
	{name: "unknown, SQLite", base: "mattn", params: "_synchronous=OFF", stranger: true},
}

var modernc = map[string]string{
	"argument counts/registered": "the driver's error for a missing argument is worded for a numbered placeholder, as sqlfence writes where it repeats a condition with ?",
}

// reports are the reports of the targets that pass TestConformance, by the targets' names.
var reports = map[string]conformance.Report{}

func TestConformance(t *testing.T) {
	var mu sync.Mutex
	for _, target := range targets {
		t.Run(target.name, func(t *testing.T) {
			t.Parallel()
			b := baseNamed(t, target.base)
			if testing.Short() && (target.name != b.Name || !b.IsUsual()) {
				t.Skip("a database's other drivers, and a driver's other modes")
			}
			switch b.Dialect {
			case sqlfence.Postgres:
				harness.NeedPostgres(t)
			case sqlfence.MySQL:
				harness.MySQLDSN(t)
			}
			report := conformance.Run(t, target.harness(b))
			if t.Failed() {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			reports[target.name] = report
		})
	}
}

// A transaction that begins by BEGIN IMMEDIATE is SQLite's only writer until it ends. No other session writes while the
// suite has one open, so no newer token comes in between.
func TestConformanceWithImmediateTransactions(t *testing.T) {
	for _, x := range []target{
		{base: "mattn", params: "_synchronous=OFF&_txlock=immediate"},
		{base: "modernc", params: "_pragma=synchronous(OFF)&_txlock=immediate", skip: modernc},
	} {
		t.Run(x.base, func(t *testing.T) {
			if testing.Short() {
				t.Skip("a driver's other modes")
			}
			t.Parallel()
			conformance.Run(t, x.harness(baseNamed(t, x.base)))
		})
	}
}

// SQLite's drivers under sqlfence's statement cache, which wrappers turn off. Statements are dropped, because the cache
// is small.
func TestConformanceWithStatementCache(t *testing.T) {
	for _, x := range []target{
		{base: "mattn", params: "_synchronous=OFF"},
		{base: "modernc", params: "_pragma=synchronous(OFF)", skip: modernc},
	} {
		t.Run(x.base, func(t *testing.T) {
			if testing.Short() {
				t.Skip("a driver's other modes")
			}
			t.Parallel()
			h := x.harness(baseNamed(t, x.base))
			h.Options = append(h.Options, sqlfence.WithStatementCache(2))
			h.Skip = maps.Clone(h.Skip)
			if h.Skip == nil {
				h.Skip = map[string]string{}
			}
			h.Skip["round trips"] = "a kept statement is executed by another call than a text"
			conformance.Run(t, h)
		})
	}
}

func baseNamed(t *testing.T, name string) harness.Base {
	for _, b := range append(harness.Bases, harness.MySQL) {
		if b.Name == name {
			return b
		}
	}
	t.Fatalf("no base %q", name)
	return harness.Base{}
}

func (x target) harness(b harness.Base) conformance.Harness {
	h := conformance.Harness{
		Connector: func(t testing.TB) driver.Connector {
			c := connector(t, b, withParams(b.DSN(t), x.params))
			if x.stranger {
				return stranger{c.Connect}
			}
			return c
		},
		Skip: x.skip,
	}
	if x.stranger {
		h.Options = []sqlfence.Option{sqlfence.WithDialect(b.Dialect)}
	}
	return h
}

// connector returns a connector as sql.Open makes one.
func connector(t testing.TB, b harness.Base, dsn string) driver.Connector {
	t.Helper()
	d := b.Raw(t, dsn).Driver() // opens no connection
	opener, ok := d.(driver.DriverContext)
	if !ok {
		return dsnConnector{d, dsn}
	}
	c, err := opener.OpenConnector(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// withParams adds parameters to a data source name, a URL or of PostgreSQL's
// keyword=value form.
func withParams(dsn, params string) string {
	switch {
	case params == "":
		return dsn
	case strings.Contains(dsn, "?"):
		return dsn + "&" + params
	case strings.Contains(dsn, "@tcp("): // MySQL's
		return dsn + "?" + params
	}
	values, err := url.ParseQuery(params)
	if err != nil {
		panic(err) // written above
	}
	for key := range values {
		dsn += " " + key + "=" + values.Get(key)
	}
	return dsn
}

// A dsnConnector is for a driver that has no connectors.
type dsnConnector struct {
	driver driver.Driver
	dsn    string
}

func (c dsnConnector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }

func (c dsnConnector) Driver() driver.Driver { return c.driver }

// A stranger is a connector whose driver sqlfence doesn't recognize.
type stranger struct {
	connect func(context.Context) (driver.Conn, error)
}

func (s stranger) Connect(ctx context.Context) (driver.Conn, error) { return s.connect(ctx) }

func (stranger) Driver() driver.Driver { return harness.Opaque{} }
