package fencepgx

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/rewrite"
)

// A Conn is a connection of a DB's pool. It must not be used concurrently. The methods work as in pgx, with the guard.
type Conn struct {
	acquired *pgxpool.Conn
	session  *session
}

// A session holds the state of a connection.
type session struct {
	adapter *connAdapter
	state   *core.Conn
	lost    bool
	simple  bool // by default, and for batches, it uses the simple protocol

	argBuffer []driver.NamedValue // room for the arguments of the next Exec
}

func (db *DB) session(c *pgx.Conn) *session {
	known := c.PgConn().CustomData()
	if s, ok := known[db.key].(*session); ok {
		return s
	}
	s := &session{simple: c.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol}
	s.adapter = newConnAdapter(c, s)
	s.state = core.NewConn(db.settings, s.adapter, &db.found)
	known[db.key] = s
	return s
}

// Release gives the connection back to the pool. Using the Conn afterwards panics, except for Release.
func (c *Conn) Release() {
	s := c.session
	if s == nil {
		return
	}
	c.session = nil
	if s.lost {
		_ = s.adapter.Close() // the error is ignored, because the connection is lost
	}
	c.acquired.Release()
}

// Conn returns pgx's connection, which isn't guarded. The observer gets a [sqlfence.RawAccess] event.
func (c *Conn) Conn() *pgx.Conn { return c.session.raw() }

func (s *session) raw() *pgx.Conn {
	s.state.RawAccess()
	return s.adapter.conn
}

// Ping checks whether the connection is alive.
func (c *Conn) Ping(ctx context.Context) error { return c.session.adapter.conn.Ping(ctx) }

// Prepare prepares a statement by a name, or refuses one that can't be guarded. Exec, Query and batches of this
// connection accept the name in place of the SQL, and guard the statement.
func (c *Conn) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	s := c.session
	plan := s.state.Rewriter().Plan(sql)
	if _, plain := s.state.PreparesPlain(ctx, sql, plan); !plain {
		if _, err := s.state.PrepareForm(ctx, sql, plan); err != nil {
			return nil, s.noted(err)
		}
	}
	made, err := s.adapter.conn.Prepare(ctx, name, sql)
	if err != nil {
		err = s.state.Explain(ctx, err)
		s.state.ReportFailure(ctx, sql, err)
		return nil, s.noted(err)
	}
	return made, nil
}

// Deallocate releases a prepared statement.
func (c *Conn) Deallocate(ctx context.Context, name string) error {
	return c.session.adapter.conn.Deallocate(ctx, name)
}

// WaitForNotification waits for a notification.
func (c *Conn) WaitForNotification(ctx context.Context) (*pgconn.Notification, error) {
	return c.session.adapter.conn.WaitForNotification(ctx)
}

// Exec executes a statement.
func (c *Conn) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	s := c.session
	room := s.argBuffer
	s.argBuffer = nil // a query rewriter or a token source may execute statements
	r, plan := s.request(sql, args, room)
	got, err := run(ctx, s, r, plan, false, core.Call[pgconn.CommandTag](execCall{}))
	if len(r.Args) <= spared {
		clear(r.Args)
		s.argBuffer = r.Args[:0]
	}
	return got, err
}

// spared is the greatest length of an argument list that a connection reuses for the next Exec.
const spared = 256

// Query executes a statement that returns rows. A refused write fails here.
func (c *Conn) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	got, err := c.query(ctx, nil, sql, args)
	if err != nil {
		return failedRows{err}, err
	}
	return got, nil
}

func (c *Conn) query(ctx context.Context, release func(), sql string, args []any) (*rows, error) {
	s := c.session
	r, plan := s.request(sql, args, nil)
	commits := s.state.Commits(r.Query)
	got, err := run(ctx, s, r, plan, true, core.Call[*rows](queryCall{}))
	if err != nil {
		return nil, err
	}
	if commits && got.endError == nil { // pgx reads the answer to a COMMIT with its rows
		got.endError = func(_ pgconn.CommandTag, err error) error {
			if err != nil {
				err = s.state.CommitFailed(ctx, err)
			}
			return err
		}
	}
	got.release, got.raw = release, s.state.RawAccess
	return got, nil
}

// QueryRow executes a statement that returns a row. Its error is that of Scan.
func (c *Conn) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	got, _ := c.Query(ctx, sql, args...) // the rows have the error
	return row{got}
}

func run[T any](
	ctx context.Context, s *session, r core.Request, plan *rewrite.Plan, wantsRows bool, call core.Call[T],
) (T, error) {
	got, err := core.Execute(ctx, s.state.NewExecution(r, plan, wantsRows), call)
	return got, s.noted(err)
}

// noted marks the connection as lost if err is driver.ErrBadConn, and returns err.
func (s *session) noted(err error) error {
	s.lost = s.lost || errors.Is(err, driver.ErrBadConn)
	return err
}

// rewrites reports whether pgx would run a query rewriter among the options before the arguments.
func rewrites(args []any) bool {
	for _, arg := range args {
		if _, ok := arg.(pgx.QueryRewriter); ok {
			return true
		}
		if !isOption(arg) {
			return false
		}
	}
	return false
}

// follow checks whether the server reports that no transaction is open, and records it: an executed COMMIT, for
// example, may have ended the transaction of Begin.
func (s *session) follow() {
	if c := s.adapter.conn.PgConn(); c.TxStatus() == 'I' && !c.IsBusy() {
		s.state.Idle()
	}
}
