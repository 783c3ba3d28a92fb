package harness

import (
	"context"
	"database/sql/driver"
)

// Hiding is a wrapper that hides the wrapped driver, so that sqlfence can't identify the driver.
type Hiding struct {
	Name  string
	Inner driver.Driver
}

// A HidingConnector is a connector of a hidden driver.
type HidingConnector struct {
	Hiding
	DSN string
}

// Open opens a connection of the hidden driver.
func (h Hiding) Open(dsn string) (driver.Conn, error) { return h.Inner.Open(dsn) }

// Connect opens a connection of the hidden driver.
func (c HidingConnector) Connect(context.Context) (driver.Conn, error) { return c.Open(c.DSN) }

// Driver hides the driver altogether.
func (c HidingConnector) Driver() driver.Driver { return Opaque{} }

// Opaque is a driver that opens nothing: the answer of a connector that hides its driver.
type Opaque struct{}

// Open refuses.
func (Opaque) Open(string) (driver.Conn, error) { return nil, driver.ErrBadConn }
