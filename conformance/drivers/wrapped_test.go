package drivers

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"
	"testing"

	"github.com/XSAM/otelsql"
	"github.com/ngrok/sqlmw"

	"github.com/sqlfence/sqlfence"
)

// The dialect is found from the driver, also behind wrappers, and the fence
// works above and beneath them.

// A thin wrapper as an application would write it: one that embeds the driver,
// one that keeps it to itself, one that makes connectors only.
type (
	embedding struct{ driver.Driver }
	hiding    struct {
		name  string
		inner driver.Driver
	}
	deep            struct{ inner *hiding }
	hidingConnector struct {
		hiding
		dsn string
	}
)

func (h hiding) Open(dsn string) (driver.Conn, error)                  { return h.inner.Open(dsn) }
func (d deep) Open(dsn string) (driver.Conn, error)                    { return d.inner.Open(dsn) }
func (c hidingConnector) Connect(context.Context) (driver.Conn, error) { return c.Open(c.dsn) }
func (c hidingConnector) Driver() driver.Driver                        { return nothing{} }

// nothing is a driver that tells nothing of what it wraps.
type nothing struct{}

func (nothing) Open(string) (driver.Conn, error) { return nil, driver.ErrBadConn }

var wrappers = map[string]func(driver.Driver) driver.Driver{
	"bare":      func(d driver.Driver) driver.Driver { return d },
	"embedding": func(d driver.Driver) driver.Driver { return embedding{d} },
	"pointer":   func(d driver.Driver) driver.Driver { return &embedding{d} },
	"hiding":    func(d driver.Driver) driver.Driver { return hiding{"x", d} },
	"deep":      func(d driver.Driver) driver.Driver { return deep{&hiding{"x", d}} },
	"sqlmw":     func(d driver.Driver) driver.Driver { return sqlmw.Driver(d, sqlmw.NullInterceptor{}) },
	"otelsql":   func(d driver.Driver) driver.Driver { return otelsql.WrapDriver(d) },
	"several": func(d driver.Driver) driver.Driver {
		return otelsql.WrapDriver(&embedding{sqlmw.Driver(d, sqlmw.NullInterceptor{})})
	},
}

func TestDialectIsFound(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		d := b.raw(t, b.dsn(t)).Driver()
		for name, wrap := range wrappers {
			if got, err := sqlfence.DialectOf(wrap(d)); err != nil || got != b.dialect {
				t.Errorf("%s: %v, %v; want %v", name, got, err, b.dialect)
			}
			fenced, err := sqlfence.WrapDriver(wrap(d), books())
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, w := range []driver.Driver{fenced, sqlmw.Driver(fenced, sqlmw.NullInterceptor{}), otelsql.WrapDriver(fenced)} {
				if got, err := sqlfence.DialectOf(w); err != nil || got != b.dialect {
					t.Errorf("%s fenced, in %T: %v, %v", name, w, got, err)
				}
			}
			// Saying what is known is fine; saying something else isn't.
			for _, dialect := range []sqlfence.Dialect{sqlfence.Postgres, sqlfence.SQLite, sqlfence.MySQL} {
				_, err := sqlfence.WrapDriver(wrap(d), sqlfence.WithDialect(dialect), books())
				if (err == nil) != (dialect == b.dialect) {
					t.Errorf("%s WithDialect(%v): %v", name, dialect, err)
				}
			}
		}
		if _, err := sqlfence.DialectOf(nothing{}); err == nil {
			t.Error("a driver that wraps nothing has a dialect")
		}
	})
}

// A fenced database refuses and lets pass, however it was put together.
func TestFencedAmongWrappers(t *testing.T) {
	table := books(sqlfence.RowFence("fence_token"))
	eachBase(t, func(t *testing.T, b base) {
		s := newShop(t, b)
		d := s.plain.Driver()
		open := map[string]func(t *testing.T) *sql.DB{
			"otelsql above": func(t *testing.T) *sql.DB {
				fenced, err := sqlfence.WrapDriver(d, table)
				if err != nil {
					t.Fatal(err)
				}
				return openConnector(t, otelsql.WrapDriver(fenced), s.source)
			},
			"otelsql registered above": func(t *testing.T) *sql.DB {
				name := "sqlfence-test-" + b.name
				if !slices.Contains(sql.Drivers(), name) {
					if err := sqlfence.Register(name, d, table); err != nil {
						t.Fatal(err)
					}
				}
				above, err := otelsql.Register(name)
				if err != nil {
					t.Fatal(err)
				}
				db, err := sql.Open(above, s.source)
				return closing(t, db, err)
			},
			"otelsql.OpenDB of a fenced connector": func(t *testing.T) *sql.DB {
				fenced, err := sqlfence.WrapDriver(d, table)
				if err != nil {
					t.Fatal(err)
				}
				c, err := fenced.(driver.DriverContext).OpenConnector(s.source)
				if err != nil {
					t.Fatal(err)
				}
				return closing(t, otelsql.OpenDB(c), nil)
			},
			"otelsql registered beneath": func(t *testing.T) *sql.DB {
				beneath, err := otelsql.Register(b.driverName)
				if err != nil {
					t.Fatal(err)
				}
				db, err := sqlfence.Open(beneath, s.source, table)
				return closing(t, db, err)
			},
			"a connector that hides its driver": func(t *testing.T) *sql.DB {
				db, err := sqlfence.OpenDB(hidingConnector{hiding{"x", d}, s.source}, table)
				return closing(t, db, err)
			},
			"sqlmw above": func(t *testing.T) *sql.DB {
				fenced, err := sqlfence.WrapDriver(d, table)
				if err != nil {
					t.Fatal(err)
				}
				return openConnector(t, sqlmw.Driver(fenced, sqlmw.NullInterceptor{}), s.source)
			},
		}
		for name, wrap := range wrappers {
			open[name+" beneath"] = func(t *testing.T) *sql.DB {
				fenced, err := sqlfence.WrapDriver(wrap(d), table)
				if err != nil {
					t.Fatal(err)
				}
				return openConnector(t, fenced, s.source)
			}
		}
		for name, open := range open {
			t.Run(name, func(t *testing.T) {
				db := open(t)
				for way, run := range ways {
					for _, w := range rowWrites {
						s.reset(t, 9)
						query := w.as(b.dialect).query + " RETURNING books.id"
						unchanged := s.unchanged(t)
						wantStale(t, run(holding(t, 8), db, query, w.args...), 8, 9)
						wantError(t, run(t.Context(), db, query, w.args...), sqlfence.ErrNoFence)
						unchanged()
						if err := run(holding(t, 10), db, query, w.args...); err != nil {
							t.Errorf("%s by %s: %v", w.name, way, err)
						}
						if got := s.state(t, true); got != "1:30@10 2:10@9 3:10@9" && got != "2:10@9 3:10@9" {
							t.Errorf("%s by %s left %s", w.name, way, got)
						}
					}
				}
			})
		}
	})
}

// openConnector opens a driver that isn't registered.
func openConnector(t *testing.T, d driver.Driver, dsn string) *sql.DB {
	t.Helper()
	dc, ok := d.(driver.DriverContext)
	if !ok {
		return closing(t, sql.OpenDB(hidingConnector{hiding{"x", d}, dsn}), nil)
	}
	c, err := dc.OpenConnector(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, sql.OpenDB(c), nil)
}
