package conformance

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"database/sql/driver"
	"errors"
	"io"
	"reflect"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/basedriver"
)

var interfaceChecks = []check{
	{name: "connection interfaces", steps: connectionInterfaces,
		explanation: "The connection offers all that the driver's does; SessionResetter and Validator, which " +
			"database/sql asks whether to keep a connection, exactly if the driver's connection does."},
	{name: "rows interfaces", steps: rowsInterfaces,
		explanation: "Rows offer exactly the optional interfaces of the driver's rows: database/sql and programs test " +
			"for each of them."},
	{name: "raw connection", steps: rawConnection,
		explanation: "sql.Conn.Raw leads to the driver's own connection, by the method Raw, and the observer gets an event."},
	{name: "connector closed", steps: connectorClosed,
		explanation: "Closing the database closes the connector, once, and returns its error."},
}

func implemented(v any, of ...reflect.Type) (names []string) {
	for _, i := range of {
		if reflect.TypeOf(v).Implements(i) {
			names = append(names, i.Name())
		}
	}
	return names
}

// onConn calls do with a connection as database/sql has it.
func (s *side) onConn(do func(driver.Conn)) {
	c := must(s.db.Conn(s.ctx))
	defer c.Close()
	s.must(c.Raw(func(dc any) error { do(dc.(driver.Conn)); return nil }))
}

func connectionInterfaces(s *side) {
	s.onConn(func(c driver.Conn) {
		s.show("exactly", implemented(c, reflect.TypeFor[driver.SessionResetter](), reflect.TypeFor[driver.Validator]()))
		s.offers("at least", implemented(c, reflect.TypeFor[driver.Pinger](), reflect.TypeFor[driver.ConnBeginTx](),
			reflect.TypeFor[driver.ConnPrepareContext](), reflect.TypeFor[driver.ExecerContext](),
			reflect.TypeFor[driver.QueryerContext](),
			reflect.TypeFor[driver.NamedValueChecker]()))
		for _, query := range []string{"SELECT 1", "UPDATE books SET price = 20 WHERE id = 1"} {
			stmt := must(basedriver.Prepare(s.ctx, c, query))
			s.offers("statement, at least", implemented(stmt, reflect.TypeFor[driver.StmtExecContext](),
				reflect.TypeFor[driver.StmtQueryContext](),
				reflect.TypeFor[driver.NamedValueChecker](), reflect.TypeFor[driver.ColumnConverter]()))
			s.show("inputs", stmt.NumInput())
			s.show("closing", stmt.Close())
		}
	})
}

func rowsInterfaces(s *side) {
	queries := []string{"SELECT id, price FROM books"}
	if s.dialect.returning {
		queries = append(queries, "UPDATE books SET price = 30 RETURNING id, price")
	}
	s.onConn(func(c driver.Conn) {
		for _, query := range queries {
			if rows, err := basedriver.Query(s.ctx, c, query, nil); !basedriver.IsSkip(err) {
				s.showRows(query, rows, err)
			}
			stmt := must(basedriver.Prepare(s.ctx, c, query))
			rows, err := basedriver.QueryStmt(s.ctx, stmt, nil)
			s.showRows(query+", prepared", rows, err)
			s.show("closing", stmt.Close())
		}
	})
}

func (s *side) showRows(step string, rows driver.Rows, err error) {
	s.must(err)
	names := implemented(rows, reflect.TypeFor[driver.RowsNextResultSet](),
		reflect.TypeFor[driver.RowsColumnTypeScanType](),
		reflect.TypeFor[driver.RowsColumnTypeDatabaseTypeName](), reflect.TypeFor[driver.RowsColumnTypeLength](),
		reflect.TypeFor[driver.RowsColumnTypeNullable](), reflect.TypeFor[driver.RowsColumnTypePrecisionScale]())
	// driver.RowsColumnScanner is known from Go 1.27 on, and looked for by its method.
	if _, ok := reflect.TypeOf(rows).MethodByName("ScanColumn"); ok {
		names = append(names, "RowsColumnScanner")
	}
	s.show(step, names)
	dest := make([]driver.Value, len(rows.Columns()))
	n := 0
	for err = rows.Next(dest); err == nil; err = rows.Next(dest) {
		n++
	}
	s.show(step+", rows and their end", n, err, err == io.EOF, rows.Close())
}

func rawConnection(s *side) {
	s.events.take()
	s.onConn(func(c driver.Conn) {
		base := c
		if s.variant != alone {
			raw, ok := c.(interface{ Raw() driver.Conn })
			if !ok {
				s.fatalf("%T has no method Raw() driver.Conn", c)
			}
			base = raw.Raw()
			events := s.events.take()
			if len(events) != 1 || events[0].Kind != sqlfence.RawAccess {
				s.errorf("the observer got %v, want one RawAccess", events)
			}
		}
		s.show("type of the connection", reflect.TypeOf(base))
	})
	s.show("afterwards", rowsText(s.db.QueryContext(s.ctx, "SELECT id FROM books ORDER BY id")), statsText(s.db.Stats()))
}

// A closer is a connector with a Close that counts.
type closer struct {
	driver.Connector
	closed *int
}

var errCloser = errors.New("the connector doesn't like to be closed")

func (c closer) Close() error { *c.closed++; return errCloser }

func connectorClosed(s *side) {
	closed := 0
	db := s.open(closer{sharing{s.connector}, &closed})
	s.closers = s.closers[:len(s.closers)-1] // it is closed here
	s.show("ping", db.PingContext(s.ctx))
	s.show("first close", db.Close(), closed)
	s.show("ping after close", db.PingContext(s.ctx))
}
