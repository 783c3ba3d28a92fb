package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/XSAM/otelsql"
	"github.com/ngrok/sqlmw"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite"
)

const shortUpdate = "UPDATE books SET price = $1 WHERE id = $2"

// wrapper is what sqlfence itself costs, without a database.
func wrapper() []*measurement {
	all := []*measurement{throughIdle("exec"), throughIdle("query")}
	for _, size := range []int{150, 4_000} {
		m := &measurement{table: "A text that names no registered table", name: fmt.Sprintf("text of %s bytes", thousands(size))}
		for _, tables := range []int{1, 100, 10_000} {
			m.contestants = append(m.contestants, contestant{name: count(tables, "registered table"), fenced: true, start: passing(tables, size)})
		}
		all = append(all, m)
	}
	made := &measurement{table: "A rewriter", name: "rewrite.New"}
	for _, tables := range []int{100, 10_000} {
		made.contestants = append(made.contestants, contestant{name: count(tables, "registered table"), fenced: true, start: making(tables)})
	}
	return append(all, made, plans())
}

// throughIdle calls a driver that does nothing.
func throughIdle(how string) *measurement {
	const query = "SELECT price FROM pens WHERE id = ? AND price < ?"
	m := &measurement{table: "Around a driver that does nothing", name: how}
	add := func(name string, fenced bool, open func() (*sql.DB, error)) {
		m.contestants = append(m.contestants, contestant{name: name, fenced: fenced, start: func(s *stage) (work, error) {
			db, err := open()
			if err != nil {
				return work{}, err
			}
			s.cleanup(func() { db.Close() })
			var price int64
			return work{per: 100, call: func(ctx context.Context, _ int) error {
				for range 100 {
					var err error
					if how == "exec" {
						_, err = db.ExecContext(ctx, query, 1, 99)
					} else {
						err = db.QueryRowContext(ctx, query, 1, 99).Scan(&price)
					}
					if err != nil {
						return err
					}
				}
				return nil
			}}, nil
		}})
	}
	around := func(d driver.Driver) func() (*sql.DB, error) {
		return func() (*sql.DB, error) { return sql.OpenDB(dsnConnector{d, ""}), nil }
	}
	add("the driver alone", false, around(idle{}))
	add("sqlmw, which does nothing", false, around(sqlmw.Driver(idle{}, sqlmw.NullInterceptor{})))
	add("otelsql", false, around(otelsql.WrapDriver(idle{}, otelOptions...)))
	for _, tables := range []int{1, 100, 10_000} {
		add("sqlfence, "+count(tables, "table"), true, func() (*sql.DB, error) {
			d, err := sqlfence.WrapDriver(idle{}, append(otherTables(tables), sqlfence.WithDialect(mattn.dialect))...)
			return sql.OpenDB(dsnConnector{d, ""}), err
		})
	}
	return m
}

// otherTables registers tables that no statement names.
func otherTables(n int) []sqlfence.Option {
	var options []sqlfence.Option
	for i := range n {
		options = append(options, sqlfence.WithTable(fmt.Sprintf("orders_%d", i), sqlfence.RowFence("fence_token")))
	}
	return options
}

func rewriter(tables int) (*rewrite.Rewriter, error) {
	registered := []rewrite.Table{{Name: "books", FenceColumn: "fence_token"}}
	for i := range tables - 1 {
		registered = append(registered, rewrite.Table{Name: fmt.Sprintf("orders_%d", i), FenceColumn: "fence_token"})
	}
	return rewrite.New(pgx.dialect, registered)
}

// passing finds out that a text names no registered table.
func passing(tables, size int) func(*stage) (work, error) {
	return func(*stage) (work, error) {
		const head, column, tail = "SELECT c.id", ", c.some_column", " FROM customers AS c JOIN countries AS k ON k.id = c.country WHERE c.id = $1"
		text := head + strings.Repeat(column, (size-len(head)-len(tail))/len(column)) + tail
		text += strings.Repeat(" ", size-len(text))
		r, err := rewriter(tables)
		return planning(r, func(int) string { return text }, guard.Pass, 100), err
	}
}

func making(tables int) func(*stage) (work, error) {
	return func(*stage) (work, error) {
		return work{call: func(context.Context, int) error { _, err := rewriter(tables); return err }}, nil
	}
}

// planning plans texts, each after the other.
func planning(r *rewrite.Rewriter, text func(n int) string, want guard.Verdict, per int) work {
	var calls atomic.Int64
	return work{per: per, call: func(context.Context, int) error {
		for range per {
			plan := r.Plan(text(int(calls.Add(1))))
			if plan.Verdict != want {
				return fmt.Errorf("verdict %v, want %v", plan.Verdict, want)
			}
			if want == guard.Guard {
				plan.Default()
			}
		}
		return nil
	}}
}

// plans are statements on a registered table: known ones, and such as have to be read.
func plans() *measurement {
	m := &measurement{table: "Plans", name: "a statement on a registered table"}
	add := func(name string, texts, per int, text func(n int) string) {
		m.contestants = append(m.contestants, contestant{name: name, fenced: true, start: func(*stage) (work, error) {
			r, err := rewriter(1)
			if err != nil {
				return work{}, err
			}
			// The texts are created before the measurement. More texts than the cache holds, so each text is unknown again at
			// its next use.
			all := make([]string, texts)
			for i := range all {
				all[i] = text(i)
			}
			return planning(r, func(n int) string { return all[n%texts] }, guard.Guard, per), nil
		}})
	}
	comment := func(text string) func(int) string {
		return func(n int) string { return fmt.Sprintf("%s -- %d", text, n) }
	}
	columns := "UPDATE books SET price = $1"
	for i := range 19 {
		columns += fmt.Sprintf(", column_%d = $%d", i, i+3)
	}
	rows := func(n int) string {
		values := make([]string, n)
		for i := range values {
			values[i] = fmt.Sprintf("($%d, $%d)", 2*i+1, 2*i+2)
		}
		return "INSERT INTO books (id, price) VALUES " + strings.Join(values, ", ")
	}
	add("short UPDATE, known", 1, 100, func(int) string { return shortUpdate })
	add("short UPDATE, new", 200_000, 10, comment(shortUpdate))
	add("UPDATE of 20 columns, new", 50_000, 10, comment(columns+" WHERE id = $2"))
	add("INSERT, new", 200_000, 10, comment("INSERT INTO books (id, title, price) VALUES ($1, $2, $3)"))
	add("IN list of 2,000, known", 1, 1, func(int) string { return inList(2_000) })
	add("IN list of 5,000, known", 1, 1, func(int) string { return inList(5_000) })
	add("IN lists of 2,000 to 2,999, new", 1_000, 1, func(n int) string { return inList(2_000 + n) })
	add("VALUES of 1,000 to 1,499 rows, new", 500, 1, func(n int) string { return rows(1_000 + n) })
	return m
}

// inList is a statement with a list of n arguments.
func inList(n int) string {
	slots := make([]string, n)
	for i := range slots {
		slots[i] = fmt.Sprintf("$%d", i+2)
	}
	return "UPDATE books SET price = $1 WHERE id IN (" + strings.Join(slots, ", ") + ")"
}

// idle is a driver that does nothing, with all that database/sql can ask for; each query
// has one row.
type (
	idle     struct{}
	idleConn struct{}
	idleStmt struct{}
	idleRows struct{ done bool }
)

func (idle) Open(string) (driver.Conn, error) { return idleConn{}, nil }

func (idleConn) Prepare(string) (driver.Stmt, error)                          { return idleStmt{}, nil }
func (idleConn) PrepareContext(context.Context, string) (driver.Stmt, error)  { return idleStmt{}, nil }
func (idleConn) Begin() (driver.Tx, error)                                    { return idleConn{}, nil }
func (idleConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return idleConn{}, nil }
func (idleConn) Commit() error                                                { return nil }
func (idleConn) Rollback() error                                              { return nil }
func (idleConn) Close() error                                                 { return nil }
func (idleConn) Ping(context.Context) error                                   { return nil }
func (idleConn) ResetSession(context.Context) error                           { return nil }
func (idleConn) IsValid() bool                                                { return true }
func (idleConn) CheckNamedValue(nv *driver.NamedValue) (err error)            { return convert(nv) }
func (idleConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}
func (idleConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &idleRows{}, nil
}

func (idleStmt) Close() error                                { return nil }
func (idleStmt) NumInput() int                               { return -1 }
func (idleStmt) CheckNamedValue(nv *driver.NamedValue) error { return convert(nv) }
func (idleStmt) Exec([]driver.Value) (driver.Result, error)  { return driver.RowsAffected(1), nil }
func (idleStmt) Query([]driver.Value) (driver.Rows, error)   { return &idleRows{}, nil }

func (*idleRows) Columns() []string { return oneColumn }
func (*idleRows) Close() error      { return nil }
func (r *idleRows) Next(dest []driver.Value) error {
	if r.done {
		return io.EOF
	}
	r.done, dest[0] = true, int64(1)
	return nil
}

var oneColumn = []string{"price"}

func convert(nv *driver.NamedValue) (err error) {
	nv.Value, err = driver.DefaultParameterConverter.ConvertValue(nv.Value)
	return err
}
