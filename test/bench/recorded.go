package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"

	"github.com/ngrok/sqlmw"

	"github.com/sqlfence/sqlfence"
)

// A sent statement is what sqlfence hands to the driver for a statement of the
// application's: to send the same by hand, without sqlfence.
type sent struct {
	query string
	args  []any
}

// record returns the statement that sqlfence sends when do executes a statement in a separate shop.
func (t target) record(s *stage, r rule, do func(ctx context.Context, db *sql.DB) error) (sent, error) {
	aside := &stage{servers: s.servers, place: s.place + "_aside", lead: true, far: s.far, callers: 1}
	defer aside.close()
	seen := new(recorder)
	sh, err := t.openShop(aside, seen.wrap(r), 1)
	if err != nil {
		return sent{}, err
	}
	seen.begin()
	if err := do(r.contexts(1)[0], sh.db); err != nil {
		return sent{}, err
	}
	statement, err := seen.last()
	statement.query = strings.ReplaceAll(statement.query, aside.place, s.place) // a schema's name, if it is said
	return statement, err
}

// A recorder remembers the last statement that was executed.
type recorder struct {
	sqlmw.NullInterceptor

	mu   sync.Mutex
	seen *sent
}

// wrap opens a database with the rule on books, and the recorder below sqlfence.
func (r *recorder) wrap(on rule) wrapping {
	return func(t target, dsn string) (*sql.DB, error) {
		plain, err := bare(t, dsn)
		if err != nil {
			return nil, err
		}
		defer plain.Close() // which has opened no connection
		d, err := sqlfence.WrapDriver(sqlmw.Driver(plain.Driver(), r),
			sqlfence.WithDialect(t.dialect), sqlfence.WithTable("books", on.table...))
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(dsnConnector{d, dsn}), nil
	}
}

func (r *recorder) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = nil
}

func (r *recorder) add(query string, named []driver.NamedValue) {
	s := &sent{query: query}
	for _, arg := range named {
		s.args = append(s.args, arg.Value)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = s
}

func (r *recorder) last() (sent, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		return sent{}, errors.New("nothing was sent")
	}
	return *r.seen, nil
}

func (r *recorder) ConnExecContext(ctx context.Context, conn driver.ExecerContext, query string, args []driver.NamedValue) (driver.Result, error) {
	r.add(query, args)
	return conn.ExecContext(ctx, query, args)
}

func (r *recorder) StmtExecContext(ctx context.Context, stmt driver.StmtExecContext, query string, args []driver.NamedValue) (driver.Result, error) {
	r.add(query, args)
	return stmt.ExecContext(ctx, args)
}

// dsnConnector opens a driver that isn't registered.
type dsnConnector struct {
	driver driver.Driver
	dsn    string
}

func (c dsnConnector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c dsnConnector) Driver() driver.Driver                        { return c.driver }
