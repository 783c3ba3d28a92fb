package transparency_test

import (
	"database/sql"
	"database/sql/driver"
	"slices"
	"testing"

	"github.com/XSAM/otelsql"
	"github.com/ngrok/sqlmw"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// sqlfence finds the dialect by the driver, also through wrappers, and guards writes whether the wrappers are around it
// or beneath it.

// These types are thin wrappers, like an application's. embedding embeds the driver.
type embedding struct{ driver.Driver }

type deep struct{ inner *harness.Hiding }

func (d deep) Open(dsn string) (driver.Conn, error) { return d.inner.Open(dsn) }

var wrappers = map[string]func(driver.Driver) driver.Driver{
	"bare":      func(d driver.Driver) driver.Driver { return d },
	"embedding": func(d driver.Driver) driver.Driver { return embedding{d} },
	"pointer":   func(d driver.Driver) driver.Driver { return &embedding{d} },
	"hiding":    func(d driver.Driver) driver.Driver { return harness.Hiding{Name: "x", Inner: d} },
	"deep":      func(d driver.Driver) driver.Driver { return deep{&harness.Hiding{Name: "x", Inner: d}} },
	"sqlmw":     func(d driver.Driver) driver.Driver { return sqlmw.Driver(d, sqlmw.NullInterceptor{}) },
	"otelsql":   func(d driver.Driver) driver.Driver { return otelsql.WrapDriver(d) },
	"several": func(d driver.Driver) driver.Driver {
		return otelsql.WrapDriver(&embedding{sqlmw.Driver(d, sqlmw.NullInterceptor{})})
	},
}

func TestDialectIsFound(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		d := b.Raw(t, b.DSN(t)).Driver()
		for name, wrap := range wrappers {
			if got, known := core.DialectOf(wrap(d)); !known || got != b.Dialect {
				t.Errorf("%s: %v, %v; want %v", name, got, known, b.Dialect)
			}
			fenced, err := sqlfence.WrapDriver(wrap(d), harness.Books())
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, w := range []driver.Driver{fenced, sqlmw.Driver(fenced, sqlmw.NullInterceptor{}), otelsql.WrapDriver(fenced)} {
				if got, known := core.DialectOf(w); !known || got != b.Dialect {
					t.Errorf("%s fenced, in %T: %v, %v", name, w, got, known)
				}
			}
			// WithDialect may name the driver's own dialect; another dialect is an error.
			for _, dialect := range []sqlfence.Dialect{sqlfence.Postgres, sqlfence.SQLite, sqlfence.MySQL} {
				_, err := sqlfence.WrapDriver(wrap(d), sqlfence.WithDialect(dialect), harness.Books())
				if (err == nil) != (dialect == b.Dialect) {
					t.Errorf("%s WithDialect(%v): %v", name, dialect, err)
				}
			}
		}
		if _, known := core.DialectOf(harness.Opaque{}); known {
			t.Error("a driver that wraps nothing has a dialect")
		}
	})
}

// A fenced database refuses stale writes and runs others, in whatever order it and other wrappers are put together.
func TestFencedAmongWrappers(t *testing.T) {
	table := harness.Books(sqlfence.RowFence("fence_token"))
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b)
		d := s.Plain.Driver()
		open := map[string]func(t *testing.T) *sql.DB{
			"otelsql above": func(t *testing.T) *sql.DB {
				fenced, err := sqlfence.WrapDriver(d, table)
				if err != nil {
					t.Fatal(err)
				}
				return openConnector(t, otelsql.WrapDriver(fenced), s.Source)
			},
			"otelsql registered above": func(t *testing.T) *sql.DB {
				name := "sqlfence-test-" + b.Name
				if !slices.Contains(sql.Drivers(), name) {
					if err := sqlfence.Register(name, d, table); err != nil {
						t.Fatal(err)
					}
				}
				above, err := otelsql.Register(name)
				if err != nil {
					t.Fatal(err)
				}
				db, err := sql.Open(above, s.Source)
				return harness.CloseAtEnd(t, db, err)
			},
			"otelsql.OpenDB of a fenced connector": func(t *testing.T) *sql.DB {
				fenced, err := sqlfence.WrapDriver(d, table)
				if err != nil {
					t.Fatal(err)
				}
				c, err := fenced.(driver.DriverContext).OpenConnector(s.Source)
				if err != nil {
					t.Fatal(err)
				}
				return harness.CloseAtEnd(t, otelsql.OpenDB(c), nil)
			},
			"otelsql registered beneath": func(t *testing.T) *sql.DB {
				beneath, err := otelsql.Register(b.DriverName)
				if err != nil {
					t.Fatal(err)
				}
				db, err := sqlfence.Open(beneath, s.Source, table)
				return harness.CloseAtEnd(t, db, err)
			},
			"a connector that hides its driver": func(t *testing.T) *sql.DB {
				db, err := sqlfence.OpenDB(harness.HidingConnector{Hiding: harness.Hiding{Name: "x", Inner: d}, DSN: s.Source}, table)
				return harness.CloseAtEnd(t, db, err)
			},
			"sqlmw above": func(t *testing.T) *sql.DB {
				fenced, err := sqlfence.WrapDriver(d, table)
				if err != nil {
					t.Fatal(err)
				}
				return openConnector(t, sqlmw.Driver(fenced, sqlmw.NullInterceptor{}), s.Source)
			},
		}
		for name, wrap := range wrappers {
			open[name+" beneath"] = func(t *testing.T) *sql.DB {
				fenced, err := sqlfence.WrapDriver(wrap(d), table)
				if err != nil {
					t.Fatal(err)
				}
				return openConnector(t, fenced, s.Source)
			}
		}
		for name, open := range open {
			t.Run(name, func(t *testing.T) {
				db := open(t)
				for way, run := range harness.Ways {
					for _, w := range harness.RowWrites {
						s.Reset(t, 9)
						query := b.Text(t, w.As(b.Dialect).Query+" RETURNING books.id")
						unchanged := s.Unchanged(t)
						harness.WantStale(t, run(harness.Holding(t, 8), db, query, w.Args...), 8, 9)
						harness.WantError(t, run(t.Context(), db, query, w.Args...), sqlfence.ErrNoFence)
						unchanged()
						if err := run(harness.Holding(t, 10), db, query, w.Args...); err != nil {
							t.Errorf("%s by %s: %v", w.Name, way, err)
						}
						if got := s.State(t, true); got != "1:30@10 2:10@9 3:10@9" && got != "2:10@9 3:10@9" {
							t.Errorf("%s by %s left %s", w.Name, way, got)
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
		return harness.CloseAtEnd(t, sql.OpenDB(harness.HidingConnector{Hiding: harness.Hiding{Name: "x", Inner: d}, DSN: dsn}), nil)
	}
	c, err := dc.OpenConnector(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return harness.CloseAtEnd(t, sql.OpenDB(c), nil)
}
