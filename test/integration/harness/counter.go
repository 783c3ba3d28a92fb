package harness

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"sync"
)

// A Counter records what reaches the base driver, in order.
type Counter struct {
	mu   sync.Mutex
	seen []Call

	Quiet bool // nothing is recorded, what is open is counted
	Tally Tally
}

// A Call is one call of the base driver. Kind is "exec", "query", "prepare",
// "stmt exec", "stmt query" or "begin"; query is empty for begin.
type Call struct {
	Kind, Query string
	Args        []driver.NamedValue
}

// Calls returns what was recorded since the last reset.
func (c *Counter) Calls() []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.seen)
}

// Texts returns the texts of the recorded calls, those of begin left out.
func (c *Counter) Texts() []string {
	var texts []string
	for _, call := range c.Calls() {
		if call.Kind != "begin" {
			texts = append(texts, call.Query)
		}
	}
	return texts
}

// Reset forgets the recorded calls.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = nil
}

func (c *Counter) add(kind, query string, args []driver.NamedValue) {
	if c.Quiet {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, Call{kind, query, slices.Clone(args)})
}

// CountingDriver and CountingConnector open connections of the driver d that
// tell c about their calls.
type CountingDriver struct {
	d driver.Driver
	c *Counter
}

// Open opens a connection that is counted.
func (d CountingDriver) Open(dsn string) (driver.Conn, error) {
	return (&CountingConnector{d, dsn}).Connect(context.Background())
}

// A CountingConnector opens connections of a data source that are counted.
type CountingConnector struct {
	Counting CountingDriver
	dsn      string
}

// Driver returns the driver that counts.
func (cc *CountingConnector) Driver() driver.Driver { return cc.Counting }

// Connect opens a connection that is counted. Connect fails for a driver with another set of interfaces than the known
// drivers.
func (cc *CountingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := cc.connectBase(ctx)
	if err != nil {
		return nil, err
	}
	full, ok := conn.(fullConn)
	if !ok {
		_ = conn.Close()
		return nil, fmt.Errorf("%T lacks an interface that the counter claims", conn)
	}
	counting := countingConn{full, cc.Counting.c, cc.Counting.c.Tally.open(&cc.Counting.c.Tally.conns, nil)}
	nvc, checks := conn.(driver.NamedValueChecker)
	resetter, resets := conn.(driver.SessionResetter)
	validator, validates := conn.(driver.Validator)
	switch [3]bool{checks, resets, validates} {
	case [3]bool{false, false, false}: // mattn
		return counting, nil
	case [3]bool{true, true, false}: // pgx
		return struct {
			countingConn
			driver.NamedValueChecker
			driver.SessionResetter
		}{counting, nvc, resetter}, nil
	case [3]bool{false, true, true}: // modernc
		return struct {
			countingConn
			driver.SessionResetter
			driver.Validator
		}{counting, resetter, validator}, nil
	case [3]bool{true, true, true}: // pq, mysql
		return struct {
			countingConn
			driver.NamedValueChecker
			driver.SessionResetter
			driver.Validator
		}{counting, nvc, resetter, validator}, nil
	}
	_ = conn.Close()
	return nil, fmt.Errorf("the counter has no form for the optional interfaces of %T", conn)
}

func (cc *CountingConnector) connectBase(ctx context.Context) (driver.Conn, error) {
	dc, ok := cc.Counting.d.(driver.DriverContext)
	if !ok {
		return cc.Counting.d.Open(cc.dsn)
	}
	connector, err := dc.OpenConnector(cc.dsn)
	if err != nil {
		return nil, err
	}
	return connector.Connect(ctx)
}

// fullConn holds the interfaces of all bases' connections. [CountingConnector.Connect] adds a base's further
// interfaces, so that the counter claims no more than the base. The deprecated Execer and Queryer are left out:
// database/sql doesn't call them where their successors exist.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.Pinger
	driver.QueryerContext
}

type countingConn struct {
	fullConn
	c    *Counter
	open *opened
}

func (cn countingConn) Close() error {
	cn.open.close()
	return cn.fullConn.Close()
}

func (cn countingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	cn.c.add("exec", query, args)
	return cn.fullConn.ExecContext(ctx, query, args)
}

func (cn countingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	cn.c.add("query", query, args)
	rows, err := cn.fullConn.QueryContext(ctx, query, args)
	return cn.c.rows(cn.open, rows, err)
}

func (cn countingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	cn.c.add("begin", "", nil)
	tx, err := cn.fullConn.BeginTx(ctx, opts)
	return cn.c.tx(cn.open, tx, err)
}

// Begin is BeginTx's deprecated form.
func (cn countingConn) Begin() (driver.Tx, error) {
	return cn.BeginTx(context.Background(), driver.TxOptions{})
}

// Prepare is PrepareContext's older form.
func (cn countingConn) Prepare(query string) (driver.Stmt, error) {
	return cn.PrepareContext(context.Background(), query)
}

func (cn countingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	cn.c.add("prepare", query, nil)
	stmt, err := cn.fullConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	full, ok := stmt.(fullStmt)
	if !ok {
		_ = stmt.Close()
		return nil, fmt.Errorf("%T lacks an interface that the counter claims", stmt)
	}
	counting := countingStmt{full, query, cn.c, cn.c.Tally.open(&cn.c.Tally.stmts, cn.open)}
	nvc, hasNVC := stmt.(driver.NamedValueChecker)
	//lint:ignore SA1019 deprecated, but a base may still have it
	if _, converts := stmt.(driver.ColumnConverter); converts && !hasNVC {
		_ = counting.Close()
		return nil, fmt.Errorf("%T has a ColumnConverter, which the counter would hide", stmt)
	}
	if hasNVC { // mysql's has both, of which database/sql asks this one
		return struct {
			countingStmt
			driver.NamedValueChecker
		}{counting, nvc}, nil
	}
	return counting, nil
}

// fullStmt is what the statements of all bases offer, as fullConn is for
// connections.
type fullStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type countingStmt struct {
	fullStmt
	query string
	c     *Counter
	open  *opened
}

func (s countingStmt) Close() error {
	s.open.close()
	return s.fullStmt.Close()
}

func (s countingStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.c.add("stmt exec", s.query, args)
	return s.fullStmt.ExecContext(ctx, args)
}

func (s countingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.c.add("stmt query", s.query, args)
	rows, err := s.fullStmt.QueryContext(ctx, args)
	return s.c.rows(s.open.conn, rows, err)
}

// Kinds returns the kinds of the recorded calls.
func (c *Counter) Kinds() []string {
	var kinds []string
	for _, call := range c.Calls() {
		kinds = append(kinds, call.Kind)
	}
	return kinds
}
