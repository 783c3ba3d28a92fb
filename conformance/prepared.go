package conformance

import (
	"context"
	"database/sql"
)

var preparedChecks = []check{
	{name: "prepared statements", steps: preparedStatements,
		explanation: "Statements are prepared once and used on several connections, in transactions, and again after an " +
			"error, as with the driver alone."},
}

func preparedStatements(s *side) {
	write := must(s.db.PrepareContext(context.Background(), s.bind("UPDATE books SET price = ? WHERE id = ?")))
	read := must(s.db.PrepareContext(context.Background(),
		s.bind("SELECT id, price FROM books WHERE id >= ? ORDER BY id")))
	insert := must(s.db.PrepareContext(context.Background(), s.bind("INSERT INTO books (id, isbn) VALUES (?, ?)")))

	// s.db.Conn takes the connection on which the statements were prepared.
	c := must(s.db.Conn(s.ctx))
	s.show("on another connection", resultText(write.ExecContext(s.ctx, 31, 1)))
	s.show("on another connection, query", rowsText(read.QueryContext(s.ctx, 1)))
	onConn := must(c.PrepareContext(s.ctx, s.bind("UPDATE books SET price = ? WHERE id = ?")))
	s.show("of a connection", resultText(onConn.ExecContext(s.ctx, 32, 2)), onConn.Close(), c.Close())
	s.show("pool", statsText(s.db.Stats()))

	for _, commit := range []bool{false, true} {
		tx := must(s.db.BeginTx(s.ctx, nil))
		s.show("tx.Stmt", resultText(tx.StmtContext(s.ctx, write).ExecContext(s.ctx, 41, 1)))
		s.show("tx.Stmt, query", rowsText(tx.StmtContext(s.ctx, read).QueryContext(s.ctx, 1)))
		own := must(tx.PrepareContext(s.ctx, s.bind("DELETE FROM books WHERE id = ?")))
		s.show("prepared in the transaction", resultText(own.ExecContext(s.ctx, 3)), own.Close())
		end := (*sql.Tx).Rollback
		if commit {
			end = (*sql.Tx).Commit
		}
		s.show("end", end(tx))
		s.show("left", rowsText(read.QueryContext(s.ctx, 1)))
	}

	for i, args := range [][]any{{4, "i4"}, {4, "i4"}, {5, "i4"}, {5, struct{}{}}, {5, "i5"}, {"six", "i6"}, {6, nil},
		{"7", 7}, {nil, "i8"}} {
		s.show("execution", i, resultText(insert.ExecContext(s.ctx, args...)))
	}
	for i, arg := range []any{1, "2", 3.0, nil, []byte("1"), "x", 1} {
		s.show("query", i, rowsText(read.QueryContext(s.ctx, arg)))
	}
	s.show("left", rowsText(s.db.QueryContext(s.ctx, "SELECT id, isbn, price FROM books ORDER BY id")))

	// The table changes under a prepared statement.
	star := must(s.db.PrepareContext(s.ctx, "SELECT id, price FROM books WHERE id = 1"))
	s.show("before the table changes", rowsText(star.QueryContext(s.ctx)))
	s.exec("ALTER TABLE books ADD COLUMN pages integer")
	s.show("after the table changed", rowsText(star.QueryContext(s.ctx)))
	s.show("after the table changed, write", resultText(write.ExecContext(s.ctx, 51, 1)))
	s.show("closing", star.Close(), write.Close(), read.Close(), insert.Close())
	s.show("pool", statsText(s.db.Stats()))
}
