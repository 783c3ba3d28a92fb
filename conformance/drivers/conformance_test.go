package drivers

import (
	"context"
	"database/sql/driver"
	"testing"

	"github.com/sqlfence/sqlfence/conformance"
)

type dsnConnector struct {
	d   driver.Driver
	dsn string
}

func (c dsnConnector) Connect(context.Context) (driver.Conn, error) { return c.d.Open(c.dsn) }
func (c dsnConnector) Driver() driver.Driver                        { return c.d }

func TestConformance(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		r := conformance.Run(t, conformance.Harness{Connector: func(t testing.TB) driver.Connector {
			dsn := b.dsn(t)
			d := b.raw(t, dsn).Driver()
			if dc, ok := d.(driver.DriverContext); ok {
				c, err := dc.OpenConnector(dsn)
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			return dsnConnector{d, dsn}
		}})
		t.Log("\n" + r.String())
	})
}
