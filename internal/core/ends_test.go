package core_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// An endingDriver records calls of a closed base connection. There must be none.
type endingDriver struct {
	form   string // the optional interfaces of its connections
	galera bool

	// mu guards the rest, with the fields of the connections: a Tx ends on its own when its context does.
	mu         sync.Mutex
	fail       map[string]func() error // by the call that fails, once
	opened     []*endingConn
	strayed    []string      // calls of a closed connection, and transactions that began in an open one
	rolledBack chan struct{} // gets a value at the next rollback; nil for none
	lands      bool          // a failing call is executed nevertheless
	met        string        // the failed call, and whether it would commit a write; empty for none
	landed     bool          // a write of a registered table was committed
}

// awaitRollback returns a function that waits for the next rollback, which database/sql may send in the background.
func (d *endingDriver) awaitRollback() func() {
	begun := make(chan struct{}, 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rolledBack = begun
	return func() { <-begun }
}

// take returns and clears strayed, and makes the calls of fail fail from now on.
func (d *endingDriver) take(fail map[string]func() error) (strayed []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	strayed = d.strayed
	d.strayed, d.fail = nil, fail
	return strayed
}

// connections returns the connections that were opened.
func (d *endingDriver) connections() []*endingConn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.opened)
}

// call records a call of a connection, and returns the call's error.
func (d *endingDriver) call(c *endingConn, what string) error {
	d.mu.Lock()
	if c.closed || c.bad && what != "rollback" && what != "close" {
		d.strayed = append(d.strayed, what)
	}
	fails := d.fail[what]
	delete(d.fail, what)
	if what == "rollback" && d.rolledBack != nil {
		d.rolledBack <- struct{}{}
		d.rolledBack = nil
	}
	lands := d.lands
	if fails != nil {
		d.met = what
		if (what == "commit" || what == "create") && !c.wrote || c.inTx && strings.HasPrefix(what, "update") {
			d.met += " of nothing"
		}
	}
	d.mu.Unlock()
	if fails == nil || lands {
		c.apply(what)
	}
	if fails == nil {
		return nil
	}
	err := fails()
	if err == nil && !lands {
		c.apply(what)
	}
	if errors.Is(err, driver.ErrBadConn) {
		d.mu.Lock()
		c.bad = true
		d.mu.Unlock()
	}
	return err
}

func (d *endingDriver) Open(string) (driver.Conn, error) { return d.Connect(context.Background()) }
func (d *endingDriver) Driver() driver.Driver            { return d }

func (d *endingDriver) Connect(context.Context) (driver.Conn, error) {
	c := &endingConn{driver: d}
	d.mu.Lock()
	d.opened = append(d.opened, c)
	d.mu.Unlock()
	switch d.form {
	case "resets":
		return struct {
			*endingConn
			endingResetter
		}{c, endingResetter{c}}, nil
	case "validates":
		return struct {
			*endingConn
			endingValidator
		}{c, endingValidator{c}}, nil
	case "resets and validates":
		return struct {
			*endingConn
			endingResetter
			endingValidator
		}{c, endingResetter{c}, endingValidator{c}}, nil
	case "begins without a context":
		return endingOldConn{c}, nil
	}
	return c, nil
}

// An endingConn is a base connection that accepts calls after Close.
type endingConn struct {
	driver *endingDriver
	closed bool
	bad    bool // the connection has returned driver.ErrBadConn
	inTx   bool
	wrote  bool // the transaction has written to a registered table
}

type endingResetter struct{ conn *endingConn }

func (r endingResetter) ResetSession(context.Context) error {
	return r.conn.driver.call(r.conn, "reset")
}

type endingValidator struct{ conn *endingConn }

func (v endingValidator) IsValid() bool { return !v.conn.isClosed() }

func (c *endingConn) isClosed() bool {
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	return c.closed
}

// apply executes a call.
func (c *endingConn) apply(what string) {
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	switch what {
	case "update":
		c.wrote = c.inTx
		c.driver.landed = c.driver.landed || !c.inTx
	case "commit", "create": // CREATE commits on MySQL
		c.driver.landed = c.driver.landed || c.wrote
		c.wrote = false
	case "rollback", "close":
		c.wrote = false
	}
}

// set sets fields of the connection.
func (c *endingConn) set(closed, inTx bool) {
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	c.closed, c.inTx = c.closed || closed, inTx
}

func (c *endingConn) Close() error {
	err := c.driver.call(c, "close")
	c.set(true, false)
	return err
}

func (c *endingConn) Ping(context.Context) error { return c.driver.call(c, "ping") }

func (c *endingConn) Begin() (driver.Tx, error) {
	c.driver.mu.Lock()
	if c.inTx {
		c.driver.strayed = append(c.driver.strayed, inOpenTx)
	}
	c.driver.mu.Unlock()
	err := c.driver.call(c, "begin")
	c.set(false, err == nil)
	return endingTx{c}, err
}

func (c *endingConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return c.Begin() }

type endingTx struct{ conn *endingConn }

func (t endingTx) end(how string) error {
	err := t.conn.driver.call(t.conn, how)
	if err == nil {
		t.conn.set(false, false)
	}
	return err
}
func (t endingTx) Commit() error   { return t.end("commit") }
func (t endingTx) Rollback() error { return t.end("rollback") }

func (c *endingConn) execute(query string) error {
	if err := fakedb.ProbeError(query, nil); err != nil {
		return err
	}
	word, _, _ := strings.Cut(strings.ToLower(query), " ")
	err := c.driver.call(c, word)
	if err == nil && slices.Contains([]string{"begin", "commit", "create"}, word) {
		c.set(false, word == "begin")
	}
	return err
}

func (c *endingConn) ExecContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), c.execute(query)
}

func (c *endingConn) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	word, _, _ := strings.Cut(strings.ToLower(query), " ")
	rows := &endingRows{conn: c, of: word}
	switch {
	case query == "SELECT name FROM others":
		rows.all = [][]driver.Value{{"a", "b"}}
	case strings.HasPrefix(query, "SHOW VARIABLES"):
		rows.all = [][]driver.Value{{"sql_select_limit", "18446744073709551615"}}
		if c.driver.galera {
			rows.all = append(rows.all, []driver.Value{"log_bin", "OFF"}, []driver.Value{"wsrep_provider", "/usr/lib/galera.so"})
		}
	}
	if strings.Contains(query, "information_schema.tables") || strings.HasPrefix(query, "SELECT @@version") {
		return rows, nil // the connection's queries for views and the version before its first guarded write
	}
	return rows, c.execute(query)
}

func (c *endingConn) Prepare(query string) (driver.Stmt, error) {
	return endingStmt{c, query}, c.driver.call(c, "prepare")
}

type endingRows struct {
	conn *endingConn
	of   string // the first word of the query
	all  [][]driver.Value
}

func (*endingRows) Columns() []string { return []string{"name", "value"} }
func (r *endingRows) Close() error    { return r.conn.driver.call(r.conn, r.of+" close") }
func (r *endingRows) Next(dest []driver.Value) error {
	if err := r.conn.driver.call(r.conn, r.of+" row"); err != nil {
		return err
	}
	if len(r.all) == 0 {
		return io.EOF
	}
	copy(dest, r.all[0])
	r.all = r.all[1:]
	return nil
}

type endingStmt struct {
	conn  *endingConn
	query string
}

func (endingStmt) Close() error  { return nil }
func (endingStmt) NumInput() int { return -1 }
func (s endingStmt) Exec([]driver.Value) (driver.Result, error) {
	return s.conn.ExecContext(context.Background(), s.query, nil)
}
func (s endingStmt) Query([]driver.Value) (driver.Rows, error) {
	return s.conn.QueryContext(context.Background(), s.query, nil)
}

// An endingOldConn has none of the newer interfaces.
type endingOldConn struct{ conn *endingConn }

func (c endingOldConn) Close() error                              { return c.conn.Close() }
func (c endingOldConn) Begin() (driver.Tx, error)                 { return c.conn.Begin() }
func (c endingOldConn) Prepare(query string) (driver.Stmt, error) { return c.conn.Prepare(query) }

const (
	endingGuarded = "UPDATE books SET price = 1 WHERE id = 1"
	endingPlain   = "DELETE FROM others"
)

// inOpenTx is recorded if a transaction begins inside of an open transaction.
const inOpenTx = "a transaction in an open one"

var errEnding = errors.New("it failed")

// An ending is how work on a connection ends.
type ending struct {
	fail   map[string]func() error
	galera bool
	keeps  bool // MySQL's server may have the transaction open still, so that sqlfence closes the connection
	later  bool // database/sql rolls the transaction back in the background
	do     func(ctx context.Context, on endingUse)
}

// endings are all endings, by the name of the test.
var endings = map[string]ending{
	"rollback fails":                {keeps: true, fail: failing("rollback"), do: endTx(endingGuarded, (*sql.Tx).Rollback)},
	"rollback of a read fails":      {keeps: true, fail: failing("rollback"), do: endTx("", (*sql.Tx).Rollback)},
	"rollback meets a bad one":      {keeps: true, fail: failingWith("rollback", driver.ErrBadConn), do: endTx(endingGuarded, (*sql.Tx).Rollback)},
	"rollback panics":               {fail: panicking("rollback"), do: endTx(endingGuarded, (*sql.Tx).Rollback)},
	"rollback and close fail":       {keeps: true, fail: failing("rollback", "close"), do: endTx(endingGuarded, (*sql.Tx).Rollback)},
	"commit fails":                  {keeps: true, fail: failing("commit"), do: endTx(endingGuarded, (*sql.Tx).Commit)},
	"commit of another table fails": {keeps: true, fail: failing("commit"), do: endTx(endingPlain, (*sql.Tx).Commit)},
	"commit meets a bad one":        {keeps: true, fail: failingWith("commit", driver.ErrBadConn), do: endTx(endingGuarded, (*sql.Tx).Commit)},
	"commit loses the network":      {keeps: true, fail: failingWith("commit", io.ErrUnexpectedEOF), do: endTx(endingGuarded, (*sql.Tx).Commit)},
	"commit panics":                 {fail: panicking("commit"), do: endTx(endingGuarded, (*sql.Tx).Commit)},
	"commit and close fail":         {keeps: true, fail: failing("commit", "close"), do: endTx(endingGuarded, (*sql.Tx).Commit)},
	"a doomed rollback fails": {
		keeps: true, fail: map[string]func() error{"delete": func() error { return &mysqlError{1213, "Deadlock found"} },
			"rollback": func() error { return errEnding }},
		do: func(ctx context.Context, on endingUse) {
			if tx, err := on.BeginTx(ctx, nil); err == nil {
				_, _ = tx.ExecContext(ctx, endingGuarded)
				_, _ = tx.ExecContext(ctx, endingPlain)
				_ = tx.Commit()
			}
		},
	},
	"a leaking statement is refused": {
		keeps: true, galera: true, fail: map[string]func() error{"update": func() error { return errStaleMySQL }, "select": func() error { return errEnding }},
		do: func(ctx context.Context, on endingUse) {
			_, _ = on.ExecContext(ctx, endingGuarded)
		},
	},
	"a statement fails":           {fail: failing("update"), do: endExec(endingGuarded)},
	"a statement meets a bad one": {fail: failingWith("update", driver.ErrBadConn), do: endExec(endingGuarded)},
	"a statement panics":          {fail: panicking("update"), do: endExec(endingGuarded)},
	"a text's commit meets a bad one": {fail: failingWith("commit", driver.ErrBadConn),
		do: func(ctx context.Context, on endingUse) {
			_, _ = on.ExecContext(ctx, endingGuarded)
			_, _ = on.ExecContext(ctx, "COMMIT")
		}},
	"the context ends before the commit": {
		keeps: true, later: true, fail: failing("rollback"),
		do: func(ctx context.Context, on endingUse) {
			ctx, cancel := context.WithCancel(ctx)
			if tx, err := on.BeginTx(ctx, nil); err == nil {
				_, _ = tx.ExecContext(ctx, endingGuarded)
				cancel()
				_ = tx.Commit()
			}
			cancel()
		}},
	"the context ends while it begins": {
		keeps: true, later: true,
		fail: map[string]func() error{"begin": func() error { endingCancel(); return nil },
			"rollback": func() error { return errEnding }},
		do: func(ctx context.Context, on endingUse) {
			ctx, endingCancel = context.WithCancel(ctx)
			_, _ = on.BeginTx(ctx, nil)
		}},
	"another begins before its rollback": {
		keeps: true, later: true, fail: failing("rollback"),
		do: func(ctx context.Context, on endingUse) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			tx, err := on.BeginTx(ctx, nil)
			if err != nil {
				return
			}
			rows, err := tx.QueryContext(ctx, "SELECT name FROM others")
			if err != nil {
				return
			}
			defer rows.Close()
			rows.Next()
			_ = rows.Scan(new(sql.RawBytes), new(sql.RawBytes)) // neither the rows nor their transaction can be closed
			cancel()
			_ = tx.Commit()
			if conn, ok := on.(*sql.Conn); ok {
				if second, err := conn.BeginTx(context.WithoutCancel(ctx), nil); err == nil {
					_ = second.Rollback()
				}
			}
		}},
	"reset fails":           {fail: failing("reset"), do: endExec(endingPlain)},
	"reset meets a bad one": {fail: failingWith("reset", driver.ErrBadConn), do: endExec(endingPlain)},
	"close fails":           {fail: failing("close"), do: endExec(endingPlain)},
}

// endingCancel ends the context of a transaction that is about to begin.
var endingCancel context.CancelFunc

// errStaleMySQL is MySQL's refusal of a token by the stored token 9.
var errStaleMySQL = &mysqlError{3057, "Incorrect user-level lock name 'sqlfence:nonce:stale:0:9 .....'"}

func failingWith(call string, err error) map[string]func() error {
	return map[string]func() error{call: func() error { return err }}
}

func failing(calls ...string) map[string]func() error {
	fail := make(map[string]func() error)
	for _, call := range calls {
		fail[call] = func() error { return errEnding }
	}
	return fail
}

func panicking(call string) map[string]func() error {
	return map[string]func() error{call: func() error { panic("the base driver panics") }}
}

func endTx(query string, end func(*sql.Tx) error) func(context.Context, endingUse) {
	return func(ctx context.Context, on endingUse) {
		tx, err := on.BeginTx(ctx, nil)
		if err != nil {
			return
		}
		if query != "" {
			_, _ = tx.ExecContext(ctx, query)
		}
		_ = end(tx)
	}
}

func endExec(query string) func(context.Context, endingUse) {
	return func(ctx context.Context, on endingUse) {
		_, _ = on.ExecContext(ctx, query)
	}
}

// An endingUse is a database, or a connection that the application keeps.
type endingUse interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// endingUses are the ways to use a pool, with statements that were prepared before.
func endingUses(t *testing.T, db *sql.DB) map[string]func(ctx context.Context) error {
	uses := map[string]func(ctx context.Context) error{
		"ping": db.PingContext,
		"query": func(ctx context.Context) error {
			rows, err := db.QueryContext(ctx, "SELECT 1")
			if err == nil {
				err = rows.Close()
			}
			return err
		},
		"transaction": func(ctx context.Context) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			return tx.Rollback()
		},
	}
	for name, query := range map[string]string{"plain": endingPlain, "guarded": endingGuarded} {
		s, err := db.PrepareContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		uses[name] = func(ctx context.Context) error { _, err := db.ExecContext(ctx, query); return err }
		uses["prepared, "+name] = func(ctx context.Context) error { _, err := s.ExecContext(ctx); return err }
	}
	return uses
}

// However work on a base connection ends, sqlfence sends nothing to the connection after closing it. The pool opens
// another connection, and an application that keeps the connection gets driver.ErrBadConn. On MySQL a failed rollback
// may leave its transaction open, and no other transaction begins in it.
func TestClosedConnectionIsNotUsedAgain(t *testing.T) {
	forms := []string{"neither", "resets", "validates", "resets and validates", "begins without a context"}
	for name, ending := range endings {
		for _, form := range forms {
			for _, dialect := range []sqlfence.Dialect{sqlfence.MySQL, sqlfence.Postgres, sqlfence.SQLite} {
				for _, held := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%v/held %v", name, form, dialect, held), func(t *testing.T) {
						base := &endingDriver{form: form, galera: ending.galera}
						db, err := sqlfence.OpenDB(base, sqlfence.WithDialect(dialect), sqlfence.WithTable("books", fenced))
						if err != nil {
							t.Fatal(err)
						}
						defer db.Close()
						for how, use := range endingUses(t, db) {
							last := base.connections()
							strayed := base.end(t, db, ending, held)
							if ending.keeps && dialect == sqlfence.MySQL && !last[len(last)-1].isClosed() {
								t.Error("the connection was kept")
							}
							err := use(with(t.Context(), 7))
							// database/sql sends no second ping on another connection if the driver can't report
							// beforehand that the first is invalid.
							if err != nil && !(how == "ping" && tellsNothing(form) && errors.Is(err, driver.ErrBadConn)) {
								t.Errorf("%s afterwards: %v", how, err)
							}
							strayed = append(strayed, base.take(nil)...)
							if dialect != sqlfence.MySQL { // elsewhere the base driver decides the state
								strayed = slices.DeleteFunc(strayed, func(s string) bool { return s == inOpenTx })
							}
							if len(strayed) > 0 {
								t.Errorf("%s afterwards: a closed connection got %q", how, strayed)
							}
						}
					})
				}
			}
		}
	}
}

// tellsNothing reports whether a base connection of this form has no way to tell the pool that it is invalid.
func tellsNothing(form string) bool { return form == "neither" || form == "begins without a context" }

// end runs an ending on the pool's only free connection, and returns the calls of a closed connection.
func (d *endingDriver) end(t *testing.T, db *sql.DB, e ending, held bool) []string {
	ctx := with(t.Context(), 7)
	db.SetMaxOpenConns(db.Stats().InUse + 1) // after a panic database/sql keeps a connection for ever
	on := endingUse(db)
	var conn *sql.Conn
	if held {
		var err error
		if conn, err = db.Conn(ctx); err != nil {
			t.Fatal(err)
		}
		on = conn
	}
	d.take(maps.Clone(e.fail))
	rolledBack := d.awaitRollback()
	panicked := func() (panicked any) {
		defer func() { panicked = recover() }()
		e.do(ctx, on)
		return nil
	}()
	if e.later {
		rolledBack()
	}
	strayed := d.take(nil)
	switch {
	case !held, panicked != nil: // after a panic database/sql waits for the connection's transaction forever
	case e.later && d.form != "resets and validates": // database/sql closes the connection, and may panic in its methods
		_ = conn.Close()
	default:
		_, err := conn.ExecContext(ctx, endingPlain)
		if err != nil && !errors.Is(err, driver.ErrBadConn) && !errors.Is(err, sql.ErrConnDone) {
			t.Errorf("on the connection: %v", err)
		}
		if tx, err := conn.BeginTx(ctx, nil); err == nil {
			_ = tx.Rollback()
		}
		_ = conn.PingContext(ctx)
		_ = conn.Close()
	}
	if e.later { // the pool checks a returned connection when it hands it out
		again, err := db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_ = again.Close()
	}
	db.SetMaxOpenConns(db.Stats().InUse + 1)
	return append(strayed, d.take(nil)...)
}

// A pool's prepared statement isn't executed on a connection that sqlfence has closed, even if sqlfence leaves the
// statement to the base driver.
func TestPreparedStatementLeavesAClosedConnection(t *testing.T) {
	for _, form := range []string{"neither", "resets", "validates", "resets and validates", "begins without a context"} {
		t.Run(form, func(t *testing.T) {
			base := &endingDriver{form: form}
			db, err := sqlfence.OpenDB(base, sqlfence.WithDialect(sqlfence.MySQL))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			s, err := db.Prepare(endingPlain)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			base.end(t, db, ending{fail: failing("rollback"), do: endTx("", (*sql.Tx).Rollback)}, false)
			_, err = s.Exec()
			if strayed, opened := base.take(nil), len(base.connections()); err != nil || len(strayed) > 0 || opened != 2 {
				t.Errorf("%v; the closed connection got %q, and %d were opened", err, strayed, opened)
			}
		})
	}
}
