package bench

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"testing"

	"github.com/XSAM/otelsql"
	"github.com/mattn/go-sqlite3"
	"github.com/ngrok/sqlmw"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/sqlfence/sqlfence"
)

// BenchmarkWrapped tells what it costs to be wrapped at all: statements that
// concern no registered table, beside the base driver alone and beside wrappers
// that do nothing. Around a driver that does nothing the cost is seen in
// nanoseconds, around SQLite in memory in proportion.
func BenchmarkWrapped(b *testing.B) {
	for _, base := range []struct {
		name string
		d    driver.Driver
	}{{"idle", idle{}}, {"mattn", &sqlite3.SQLiteDriver{}}} {
		b.Run("db="+base.name, func(b *testing.B) {
			for _, how := range wrappedCalls {
				b.Run("how="+how.name, func(b *testing.B) {
					for _, w := range wrappings {
						b.Run("impl="+w.name, func(b *testing.B) {
							db := one(b, sql.OpenDB(dsnConnector{w.wrap(b, base.d)}), nil)
							if _, err := db.Exec("CREATE TABLE pens (id integer PRIMARY KEY, price integer)"); err != nil {
								b.Fatal(err)
							}
							if _, err := db.Exec("INSERT INTO pens VALUES (1, 10)"); err != nil {
								b.Fatal(err)
							}
							call := how.call(b, db)
							b.ReportAllocs()
							for b.Loop() {
								if err := call(); err != nil {
									b.Fatal(err)
								}
							}
						})
					}
				})
			}
		})
	}
}

var wrappings = []struct {
	name string
	wrap func(b *testing.B, d driver.Driver) driver.Driver
}{
	{"raw", func(_ *testing.B, d driver.Driver) driver.Driver { return d }},
	{"sqlmw", func(_ *testing.B, d driver.Driver) driver.Driver { return sqlmw.Driver(d, sqlmw.NullInterceptor{}) }},
	{"otelsql", func(_ *testing.B, d driver.Driver) driver.Driver {
		return otelsql.WrapDriver(d, otelsql.WithTracerProvider(tracenoop.NewTracerProvider()), otelsql.WithMeterProvider(metricnoop.NewMeterProvider()))
	}},
	{"sqlfence", func(b *testing.B, d driver.Driver) driver.Driver {
		fenced, err := sqlfence.WrapDriver(d, sqlfence.WithDialect(sqlfence.SQLite), sqlfence.WithTable("books", sqlfence.RowFence("fence_token")),
			sqlfence.WithTable("shop.orders"), sqlfence.WithTable("shop.customers", sqlfence.Resource("orders")))
		if err != nil {
			b.Fatal(err)
		}
		return fenced
	}},
}

const (
	update = "UPDATE pens SET price = ? WHERE id = ?"
	choose = "SELECT price FROM pens WHERE id = ? AND price < ?"
)

var wrappedCalls = []struct {
	name string
	call func(b *testing.B, db *sql.DB) func() error
}{
	{"exec", func(_ *testing.B, db *sql.DB) func() error {
		return func() error { _, err := db.ExecContext(context.Background(), update, 30, 1); return err }
	}},
	{"query", func(_ *testing.B, db *sql.DB) func() error {
		var price int64
		return func() error { return db.QueryRowContext(context.Background(), choose, 1, 99).Scan(&price) }
	}},
	{"prepared-exec", func(b *testing.B, db *sql.DB) func() error {
		stmt := prepare(b, db, update)
		return func() error { _, err := stmt.ExecContext(context.Background(), 30, 1); return err }
	}},
	{"prepared-query", func(b *testing.B, db *sql.DB) func() error {
		stmt := prepare(b, db, choose)
		var price int64
		return func() error { return stmt.QueryRowContext(context.Background(), 1, 99).Scan(&price) }
	}},
}

func prepare(b *testing.B, db *sql.DB, query string) *sql.Stmt {
	stmt, err := db.Prepare(query)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { stmt.Close() })
	return stmt
}

// dsnConnector opens a driver that isn't registered.
type dsnConnector struct{ d driver.Driver }

func (c dsnConnector) Connect(context.Context) (driver.Conn, error) { return c.d.Open(":memory:") }
func (c dsnConnector) Driver() driver.Driver                        { return c.d }

// idle is a driver that does nothing, with all that database/sql can ask for;
// each query has one row.
type (
	idle     struct{}
	idleConn struct{}
	idleStmt struct{}
	idleRows struct{ done bool }
)

func (idle) Open(string) (driver.Conn, error) { return idleConn{}, nil }

func (idleConn) Prepare(string) (driver.Stmt, error)                          { return idleStmt{}, nil }
func (idleConn) PrepareContext(context.Context, string) (driver.Stmt, error)  { return idleStmt{}, nil }
func (idleConn) Begin() (driver.Tx, error)                                    { return idleConn{}, nil }
func (idleConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return idleConn{}, nil }
func (idleConn) Commit() error                                                { return nil }
func (idleConn) Rollback() error                                              { return nil }
func (idleConn) Close() error                                                 { return nil }
func (idleConn) Ping(context.Context) error                                   { return nil }
func (idleConn) ResetSession(context.Context) error                           { return nil }
func (idleConn) IsValid() bool                                                { return true }
func (idleConn) CheckNamedValue(nv *driver.NamedValue) (err error)            { return convert(nv) }
func (idleConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}
func (idleConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &idleRows{}, nil
}

func (idleStmt) Close() error                                { return nil }
func (idleStmt) NumInput() int                               { return -1 }
func (idleStmt) CheckNamedValue(nv *driver.NamedValue) error { return convert(nv) }
func (idleStmt) Exec([]driver.Value) (driver.Result, error)  { return driver.RowsAffected(1), nil }
func (idleStmt) Query([]driver.Value) (driver.Rows, error)   { return &idleRows{}, nil }
func (idleStmt) ExecContext(context.Context, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}
func (idleStmt) QueryContext(context.Context, []driver.NamedValue) (driver.Rows, error) {
	return &idleRows{}, nil
}

func (*idleRows) Columns() []string { return oneColumn }
func (*idleRows) Close() error      { return nil }
func (r *idleRows) Next(dest []driver.Value) error {
	if r.done {
		return io.EOF
	}
	r.done, dest[0] = true, int64(1)
	return nil
}

var oneColumn = []string{"price"}

func convert(nv *driver.NamedValue) (err error) {
	nv.Value, err = driver.DefaultParameterConverter.ConvertValue(nv.Value)
	return err
}
