package fenced

import (
	"context"
	"database/sql/driver"
	"errors"
)

// A connector opens connections by a driver that has no connectors.
type connector struct {
	driver driver.Driver
	dsn    string
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c connector) Driver() driver.Driver                        { return c.driver }

// A hasty connector's connections to SQLite wait for a lock for a short time only: the
// application may hold it, and wait for us.
type hasty struct{ connector }

func (h hasty) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := h.connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.(driver.ExecerContext).ExecContext(ctx, "PRAGMA busy_timeout = 500", nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}
