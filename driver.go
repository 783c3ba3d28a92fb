package sqlfence

import (
	"database/sql"
	"database/sql/driver"
	_ "github.com/ngrok/sqlmw"
)

// Open opens a database as sql.Open does, fenced.
func Open(driverName, dsn string, opts ...Option) (*sql.DB, error) { panic("stub") }

// OpenDB opens.
func OpenDB(c driver.Connector, opts ...Option) (*sql.DB, error) { panic("stub") }

// WrapDriver wraps.
func WrapDriver(d driver.Driver, opts ...Option) (driver.Driver, error) { panic("stub") }

// Register registers.
func Register(name string, d driver.Driver, opts ...Option) error { panic("stub") }

// DialectOf returns the dialect of a driver, fenced or not, as sqlfence would
// find it; for packages that send SQL of their own through a *sql.DB.
func DialectOf(d driver.Driver) (Dialect, error) { panic("stub") }
