package conformance

import (
	"context"
	"database/sql"
	"errors"
)

var errorChecks = []check{
	{name: "errors", steps: driverErrors,
		explanation: "The driver's errors arrive with their text and their types, by each way of sending a statement."},
	{name: "errors in transactions", steps: errorsInTransactions,
		explanation: "After an error a transaction is in the same state as with the driver alone."},
	{name: "use after close", steps: useAfterClose,
		explanation: "Statements, rows, connections and databases refuse to be used after they were closed as with the " +
			"driver alone."},
}

// faulty returns statements that the database refuses. Writes to the table books have no syntax error, because
// sqlfence, not the database, would refuse a write to a registered table that it can't parse.
func faulty() []string {
	return []string{
		"SELEC 1", "SELECT FROM WHERE", "SELECT 'unfinished", "SELECT * FROM nowhere", "SELECT nothing FROM books",
		"INSERT INTO nowhere (id) VALUES (1)",
		"INSERT INTO books (id) VALUES (1)", "INSERT INTO books (id, isbn) VALUES (9, 'i1')", "UPDATE books SET isbn = 'i1'",
		"INSERT INTO books (id, price) VALUES (9, NULL)", "UPDATE books SET price = NULL WHERE id = 1",
		"UPDATE books SET nothing = 1",
		"UPDATE books SET price = nothing", "DELETE FROM books WHERE nothing = 1",
		"UPDATE books SET price = nofunction(price)",
		"SELECT 1 / (id - 2) FROM books ORDER BY id", "UPDATE books SET price = 1 / (id - 2)",
		"DELETE FROM books WHERE 1 / (id - 2) > 5",
	}
}

func driverErrors(s *side) {
	for _, query := range faulty() {
		s.show(query, resultText(s.db.ExecContext(s.ctx, query)))
		s.show(query+", query", rowsText(s.db.QueryContext(s.ctx, query)))
		s.prepared(query, func(prepared *sql.Stmt) {
			for range 2 { // twice, because a failure may leave the statement in a bad state
				s.show(query+", prepared exec", resultText(prepared.ExecContext(s.ctx)))
				s.show(query+", prepared query", rowsText(prepared.QueryContext(s.ctx)))
			}
		})
	}
	var id int
	err := s.db.QueryRowContext(s.ctx, "SELECT id FROM books WHERE id = 99").Scan(&id)
	s.show("no row", err, errors.Is(err, sql.ErrNoRows))
	s.show("left", rowsText(s.db.QueryContext(s.ctx, "SELECT id, isbn, price FROM books ORDER BY id")))
}

func errorsInTransactions(s *side) {
	for _, query := range faulty() {
		tx := must(s.db.BeginTx(s.ctx, nil))
		s.show("before", resultText(tx.ExecContext(s.ctx, "UPDATE books SET price = 77 WHERE id = 3")))
		s.show(query, resultText(tx.ExecContext(s.ctx, query)))
		s.show(query+", then an update",
			resultText(tx.ExecContext(s.ctx, "UPDATE books SET price = 78 WHERE id = 2")))
		s.show(query+", then a query", rowsText(tx.QueryContext(s.ctx, "SELECT id, price FROM books ORDER BY id")))
		s.show(query+", then commit", tx.Commit())
		s.show(query+", left", rowsText(s.db.QueryContext(s.ctx, "SELECT id, price FROM books ORDER BY id")))
		s.exec("UPDATE books SET price = 10")
	}
}

func useAfterClose(s *side) {
	bg := context.Background()
	prepared := must(s.db.PrepareContext(s.ctx, "UPDATE books SET price = 20 WHERE id = 1"))
	s.show("statement", prepared.Close(), prepared.Close())
	s.show("statement, exec", resultText(prepared.ExecContext(s.ctx)))
	s.show("statement, query", rowsText(prepared.QueryContext(s.ctx)))

	rows := must(s.db.QueryContext(s.ctx, "SELECT id FROM books"))
	_, columnsErr := rows.Columns()
	s.show("rows", columnsErr, rows.Close(), rows.Next(), rows.Err(), rows.Scan(new(int)))

	c := must(s.db.Conn(bg))
	onConn := must(c.PrepareContext(s.ctx, "SELECT id FROM books ORDER BY id"))
	s.show("connection", c.Close(), c.Close(), c.PingContext(bg), c.Raw(func(any) error { return nil }))
	s.show("connection, its statement", rowsText(onConn.QueryContext(s.ctx)), onConn.Close())
	s.show("connection, exec", resultText(c.ExecContext(s.ctx, "UPDATE books SET price = 20")))

	db := s.open(sharing{s.connector})
	rest := must(db.PrepareContext(s.ctx, "UPDATE books SET price = 20 WHERE id = 1"))
	s.show("database", db.Close(), db.Close(), db.PingContext(bg))
	s.show("database, exec", resultText(db.ExecContext(s.ctx, "UPDATE books SET price = 20")))
	s.show("database, its statement", resultText(rest.ExecContext(s.ctx)))
}
