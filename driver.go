package sqlfence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/sqlfence/sqlfence/internal/core"
)

var (
	_ driver.Driver        = (*fencedDriver)(nil)
	_ driver.DriverContext = (*fencedDriver)(nil)
	_ driver.Connector     = (*connector)(nil)
	_ io.Closer            = (*connector)(nil)
)

// Open opens a fenced database with a registered driver, as sql.Open does.
//
// Invalid options, an already fenced driver, and an unknown driver without [WithDialect] are [ErrInvalid]; one error
// reports all. Other errors are those of sql.Open.
func Open(driverName, dsn string, opts ...Option) (*sql.DB, error) {
	// database/sql gives a registered driver only through an opened DB.
	probe, err := sql.Open(driverName, dsn)
	if err != nil {
		return nil, fmt.Errorf("sqlfence: open: %w", err)
	}
	base := probe.Driver()
	if err := probe.Close(); err != nil {
		return nil, fmt.Errorf("sqlfence: open: %w", err)
	}
	d, err := wrapDriver(base, opts)
	if err != nil {
		return nil, err
	}
	c, err := d.OpenConnector(dsn)
	if err != nil {
		return nil, fmt.Errorf("sqlfence: open: %w", err)
	}
	return sql.OpenDB(c), nil
}

// OpenDB opens a fenced database as sql.OpenDB does. Errors are as for [Open], and a nil connector is [ErrInvalid]. On
// an error c isn't closed.
func OpenDB(c driver.Connector, opts ...Option) (*sql.DB, error) {
	if c == nil {
		return nil, fmt.Errorf("%w: nil connector", ErrInvalid)
	}
	base := c.Driver()
	s, err := newSettings(opts, base, c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(&connector{base: c, driver: &fencedDriver{base: base, settings: s}}), nil
}

// WrapDriver returns a driver that opens fenced connections through d. Errors
// are as for [Open], and a nil driver is [ErrInvalid].
func WrapDriver(d driver.Driver, opts ...Option) (driver.Driver, error) {
	fenced, err := wrapDriver(d, opts)
	if err != nil {
		return nil, err
	}
	return fenced, nil
}

// Register registers a fenced driver for sql.Open under name. A taken name is [ErrInvalid]; other errors: [WrapDriver].
func Register(name string, d driver.Driver, opts ...Option) error {
	fenced, err := wrapDriver(d, opts)
	if err != nil {
		return err
	}
	if slices.Contains(sql.Drivers(), name) {
		return fmt.Errorf("%w: a driver is already registered as %q", ErrInvalid, name)
	}
	sql.Register(name, fenced)
	return nil
}

func wrapDriver(d driver.Driver, opts []Option) (*fencedDriver, error) {
	if d == nil {
		return nil, fmt.Errorf("%w: nil driver", ErrInvalid)
	}
	s, err := newSettings(opts, d)
	if err != nil {
		return nil, err
	}
	return &fencedDriver{base: d, settings: s}, nil
}

// newSettings checks all options; its error lists all invalid options. bases are values that identify the base driver.
func newSettings(opts []Option, bases ...any) (*core.Settings, error) {
	o := core.OptionsOf(opts)
	if slices.ContainsFunc(bases, isFenced) {
		o.Fail(errors.New("the driver is fenced already; pass the driver that it wraps, or open it with package " +
			"database/sql"))
	}
	return core.NewSettings(o, errorFactory{}, bases...)
}

func isFenced(base any) bool {
	switch base.(type) {
	case *fencedDriver, *connector:
		return true
	}
	return false
}

// fencedDriver opens fenced connections through another driver.
type fencedDriver struct {
	base     driver.Driver
	settings *core.Settings

	found sync.Map // the *core.Found of each dsn, for connections that were opened without a connector
}

// Settings implements fenced.Driver, for packages such as tokens that send SQL.
func (d *fencedDriver) Settings() *core.Settings { return d.settings }

func (d *fencedDriver) Open(dsn string) (driver.Conn, error) {
	base, err := d.base.Open(dsn)
	if err != nil {
		return nil, err
	}
	found, _ := d.found.LoadOrStore(dsn, new(core.Found))
	return d.fence(context.Background(), base, found.(*core.Found))
}

// fence fences a connection, unless the options' check refuses it.
func (d *fencedDriver) fence(ctx context.Context, base driver.Conn, f *core.Found) (driver.Conn, error) {
	c, err := newConn(ctx, d.settings, base, f)
	if err == nil {
		return c, nil
	}
	_ = base.Close() // the reason is err
	if (errorFactory{}).Sentinel(err) != nil {
		d.settings.ReportFailure(ctx, "", err)
	}
	return nil, err
}

// OpenConnector implements driver.DriverContext, even if base doesn't.
func (d *fencedDriver) OpenConnector(dsn string) (driver.Connector, error) {
	opener, ok := d.base.(driver.DriverContext)
	if !ok {
		return &connector{base: dsnConnector{d.base, dsn}, driver: d}, nil
	}
	c, err := opener.OpenConnector(dsn)
	if err != nil {
		return nil, err
	}
	return &connector{base: c, driver: d}, nil
}

// connector opens fenced connections through another connector.
type connector struct {
	base   driver.Connector
	driver *fencedDriver
	found  core.Found
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	base, err := c.base.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return c.driver.fence(ctx, base, &c.found)
}

func (c *connector) Driver() driver.Driver { return c.driver }

// Close implements io.Closer; sql.DB.Close calls it.
func (c *connector) Close() error {
	if closer, ok := c.base.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// dsnConnector is a connector for a driver without connectors, as in database/sql.
type dsnConnector struct {
	driver driver.Driver
	dsn    string
}

func (c dsnConnector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c dsnConnector) Driver() driver.Driver                        { return c.driver }
