package harness

import (
	"context"
	"database/sql/driver"
)

// Hiding keeps the driver that it wraps to itself.
type Hiding struct {
	Name  string
	Inner driver.Driver
}

// A HidingConnector is a connector of a hidden driver.
type HidingConnector struct {
	Hiding
	DSN string
}

func (h Hiding) Open(dsn string) (driver.Conn, error) { return h.Inner.Open(dsn) }

func (c HidingConnector) Connect(context.Context) (driver.Conn, error) { return c.Open(c.DSN) }

func (c HidingConnector) Driver() driver.Driver { return Opaque{} }

// Opaque is a driver that tells nothing of what it wraps.
type Opaque struct{}

func (Opaque) Open(string) (driver.Conn, error) { return nil, driver.ErrBadConn }
