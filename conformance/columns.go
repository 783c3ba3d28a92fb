package conformance

import (
	"database/sql"
	"fmt"
	"strings"
)

var columnChecks = []check{
	{name: "column types", steps: columnTypes,
		explanation: "Rows describe their columns alike: name, database type, scan type, length, nullability, precision " +
			"and scale."},
	{name: "result sets", steps: resultSets,
		explanation: "A string of several statements gives the same results, one set after the other."},
	{name: "empty statements", steps: emptyStatements,
		explanation: "Empty statements, which some programs send to see whether the database answers, have the same " +
			"effect as with the driver alone."},
}

// queried are queries with columns of all kinds. No query names the fence column, because its values differ if the
// table is registered.
func (k *kit) queried() []string {
	const all = "id, isbn, price, weight, cover, printed, list"
	queries := []string{
		"SELECT " + all + " FROM books ORDER BY id",
		"SELECT id AS a, price * 1.5, NULL, count(*) OVER () AS n, 'x', id = 1 FROM books b ORDER BY id",
		"SELECT " + all + " FROM books WHERE 1 = 0",
		"SELECT 1",
	}
	if k.dialect.returning {
		queries = append(queries,
			"UPDATE books SET price = price + 1 RETURNING "+all+", price * 1.5 AS half",
			"INSERT INTO books (id) VALUES (4), (5) RETURNING id, isbn, price",
			"DELETE FROM books WHERE id > 3 RETURNING "+all,
			"DELETE FROM books WHERE id > 3 RETURNING "+all,
			"UPDATE books SET price = 1 WHERE id = 99 RETURNING id AS missing")
	}
	return append(queries, k.dialect.ownTypes...)
}

func columnTypes(s *side) {
	s.exec("UPDATE books SET printed = '2020-01-02 03:04:05', list = 12.5 WHERE id = 2")
	for _, query := range s.queried() {
		rows, err := s.db.QueryContext(s.ctx, query)
		s.showColumns(query, rows, err)
		s.prepared(query, func(prepared *sql.Stmt) {
			for range 2 {
				rows, err = prepared.QueryContext(s.ctx)
				s.showColumns(query+", prepared", rows, err)
			}
		})
	}
}

// showColumns shows the columns before and after the first row, and the rest.
func (s *side) showColumns(step string, rows *sql.Rows, err error) {
	if err != nil {
		s.show(step, err)
		return
	}
	s.show(step+", columns", columnsText(rows))
	s.show(step+", first", rows.Next())
	s.show(step+", columns at the first row", columnsText(rows))
	s.show(step+", rest", rowsText(rows, nil))
	s.show(step+", columns at the end", columnsText(rows))
}

func columnsText(rows *sql.Rows) plain {
	types, err := rows.ColumnTypes()
	if err != nil {
		return plain(text(err))
	}
	var b strings.Builder
	for _, c := range types {
		length, hasLength := c.Length()
		nullable, hasNullable := c.Nullable()
		precision, scale, hasScale := c.DecimalSize()
		fmt.Fprintf(&b, "(%s %s, scan %v, length %d %t, nullable %t %t, decimal %d %d %t)",
			c.Name(), c.DatabaseTypeName(), c.ScanType(), length, hasLength, nullable, hasNullable, precision, scale, hasScale)
	}
	return plain(b.String())
}

func resultSets(s *side) {
	for _, query := range []string{
		"SELECT 1; SELECT 'two'", "SELECT id FROM books ORDER BY id; SELECT 'two' AS a, 2 AS b; SELECT 3", "SELECT 1;",
		"SELECT 1; SELECT nothing FROM nowhere", "SELECT 1; -- done",
	} {
		s.show(query, rowsText(s.db.QueryContext(s.ctx, query)))
		s.show(query+", exec", resultText(s.db.ExecContext(s.ctx, query)))
		s.prepared(query, func(prepared *sql.Stmt) {
			s.show(query+", prepared", rowsText(prepared.QueryContext(s.ctx)))
		})
		// Columns is called for each result set before its rows.
		rows, err := s.db.QueryContext(s.ctx, query)
		for more := err == nil; more; more = rows.NextResultSet() {
			s.show(query+", a set's columns", columnsText(rows))
		}
		if err == nil {
			s.show("closing", rows.Err(), rows.Close())
		}
	}
}

// emptyStatements doesn't prepare empty statements, because preparing them crashes too many drivers.
func emptyStatements(s *side) {
	for _, query := range []string{"", ";", " ", "-- nothing", "/* nothing */", ";;"} {
		s.show("query "+query, rowsText(s.db.QueryContext(s.ctx, query)))
		s.show("exec "+query, resultText(s.db.ExecContext(s.ctx, query)))
	}
}
