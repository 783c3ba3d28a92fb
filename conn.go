package sqlfence

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"

	"github.com/sqlfence/sqlfence/rewrite"
)

var (
	_ driver.Conn               = (*conn)(nil)
	_ driver.ConnBeginTx        = (*conn)(nil)
	_ driver.ConnPrepareContext = (*conn)(nil)
	_ driver.ExecerContext      = (*conn)(nil)
	_ driver.QueryerContext     = (*conn)(nil)
	_ driver.Pinger             = (*conn)(nil)
	_ driver.NamedValueChecker  = (*conn)(nil)
)

// middleware is what sqlmw's connection is used for.
type middleware interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.NamedValueChecker
}

// conn is a fenced connection: sqlmw's, whose interceptor is the guard, and
// around it what sqlmw loses of the base connection.
type conn struct {
	middleware
	guard *guard
}

// newConn fences base. database/sql keeps a connection after a transaction's
// context was cancelled only if it has both SessionResetter and Validator, so
// the two are there exactly if base has them.
func newConn(f *fence, base driver.Conn) (driver.Conn, error) {
	g := &guard{fence: f, base: base}
	m, err := intercepted(base, g)
	if err != nil {
		_ = base.Close() // the reason is err
		return nil, err
	}
	c := &conn{middleware: m, guard: g}
	resetter, resets := base.(driver.SessionResetter)
	validator, validates := base.(driver.Validator)
	switch {
	case resets && validates:
		return struct {
			*conn
			driver.SessionResetter
			driver.Validator
		}{c, resetter, validator}, nil
	case resets:
		return struct {
			*conn
			driver.SessionResetter
		}{c, resetter}, nil
	case validates:
		return struct {
			*conn
			driver.Validator
		}{c, validator}, nil
	}
	return c, nil
}

// Prepare implements driver.Conn. sqlmw's own would not be intercepted.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext implements driver.ConnPrepareContext. A statement that concerns
// no registered table is the base driver's own, where its arguments can't
// change what it is.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	f := c.guard.fence
	// Where arguments may be options, each execution has to be looked at.
	if optionless := f.profile.noOptions || len(f.tables) == 0; optionless && f.rewriter.Plan(query).Verdict == rewrite.Pass {
		return prepareBase(ctx, c.guard.base, query)
	}
	mw, err := c.middleware.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return newStmt(c.guard.prepared, mw)
}

// Begin implements driver.Conn. sqlmw's own would not be intercepted.
func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// ExecContext implements driver.ExecerContext. sqlmw's panics on a base without Exec.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	switch c.guard.base.(type) {
	case driver.ExecerContext, driver.Execer:
		return c.middleware.ExecContext(ctx, query, args)
	}
	return nil, driver.ErrSkip
}

// Raw returns the base driver's connection, for sql.Conn.Raw. What is done with
// it goes around the fence; the observer is told that it was handed out.
func (c *conn) Raw() driver.Conn {
	c.guard.fence.report(context.Background(), Event{Kind: RawAccess})
	return c.guard.base
}
