package conformance

import (
	"context"
	"database/sql"
)

var resultChecks = []check{
	{name: "results", steps: results,
		explanation: "LastInsertId and RowsAffected, and their errors, are the driver's, for each kind of statement."},
	{name: "rows closed early", steps: rowsClosedEarly,
		explanation: "Rows that are closed before their end leave the connection as the driver alone leaves it."},
}

func results(s *side) {
	for _, query := range []string{
		"INSERT INTO books (id, isbn) VALUES (10, 'i10')", "INSERT INTO books (id) VALUES (11), (12)",
		"UPDATE books SET price = 20", "UPDATE books SET price = 20 WHERE id = 99", "DELETE FROM books WHERE id = 10",
		"DELETE FROM books WHERE id = 99",
		"INSERT INTO books (id, price) SELECT id + 20, price FROM books", "SELECT id FROM books", "SELECT 1",
		"CREATE TABLE pens (id integer)", "INSERT INTO pens (id) VALUES (1)", "UPDATE pens SET id = 2", "DROP TABLE pens",
	} {
		s.show(query, resultText(s.db.ExecContext(s.ctx, query)))
	}
	for _, query := range []string{
		"UPDATE books SET price = ? WHERE id = ?", "INSERT INTO books (price, id) VALUES (?, ?)",
		"DELETE FROM books WHERE price = ? AND id = ?",
	} {
		s.prepared(s.bind(query), func(prepared *sql.Stmt) {
			for _, id := range []int{50, 51, 1} {
				s.show(query+", prepared", resultText(prepared.ExecContext(s.ctx, 7, id)))
			}
		})
	}
	s.show("left", rowsText(s.db.QueryContext(s.ctx, "SELECT id, isbn, price FROM books ORDER BY id")))
}

func rowsClosedEarly(s *side) {
	s.db.SetMaxOpenConns(1)
	for _, query := range s.queried() {
		rows, err := s.db.QueryContext(s.ctx, query)
		s.show(query, err)
		if err == nil {
			s.show(query+", closed early", rows.Next(), rows.Close(), rows.Err(), rows.Next(), rows.Close())
		}
		rows, err = s.db.QueryContext(s.ctx, query)
		if err == nil {
			s.show(query+", closed unread", rows.Close(), rows.Err())
		}
		var n any
		s.show(query+", first of many", s.db.QueryRowContext(context.Background(),
			"SELECT id FROM books ORDER BY id").Scan(&n), n)
		s.show("pool", statsText(s.db.Stats()))
	}
	s.show("left", rowsText(s.db.QueryContext(s.ctx, "SELECT id, isbn, price FROM books ORDER BY id")))
}
