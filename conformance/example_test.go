package conformance_test

import (
	"context"
	"database/sql/driver"
	"path/filepath"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/conformance"
)

// yourDriver stands for the driver that is tested.
type yourDriver struct{}

func (yourDriver) Open(string) (driver.Conn, error) { return nil, driver.ErrBadConn }

// A driver without connectors is opened by its data source name.
type connector struct{ dsn string }

func (c connector) Connect(context.Context) (driver.Conn, error) { return yourDriver{}.Open(c.dsn) }
func (connector) Driver() driver.Driver                          { return yourDriver{} }

// A test of a driver that speaks SQLite's SQL and that sqlfence doesn't know.
func Example() {
	_ = func(t *testing.T) { // func TestSQLFence(t *testing.T)
		conformance.Run(t, conformance.Harness{
			Connector: func(t testing.TB) driver.Connector {
				return connector{"file:" + filepath.Join(t.TempDir(), "test.db")}
			},
			Options: []sqlfence.Option{sqlfence.WithDialect(sqlfence.SQLite)},
			Skip:    map[string]string{"isolation levels": "the database has one level"},
		})
	}
}
