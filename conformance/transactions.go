package conformance

import (
	"context"
	"database/sql"
	"fmt"
)

var transactionChecks = []check{
	{name: "isolation levels", steps: isolationLevels,
		explanation: "Each isolation level, read-only or not, has the effect, or the refusal, that it has with the " +
			"driver alone."},
	{name: "end of transactions", steps: endOfTransactions,
		explanation: "Commit, rollback, a second one, and use of the transaction afterwards have the same results as " +
			"with the driver alone."},
}

func isolationLevels(s *side) {
	for level := sql.LevelDefault; level <= sql.LevelLinearizable+1; level++ {
		for _, readOnly := range []bool{false, true} {
			step := fmt.Sprintf("%v, read-only %t", level, readOnly)
			tx, err := s.db.BeginTx(s.ctx, &sql.TxOptions{Isolation: level, ReadOnly: readOnly})
			s.show(step, err)
			if err != nil {
				continue
			}
			if query := s.dialect.transaction; query != "" {
				s.show(step+", the database", rowsText(tx.QueryContext(s.ctx, query)))
			}
			s.show(step+", read", rowsText(tx.QueryContext(s.ctx, "SELECT id, price FROM books ORDER BY id")))
			res, err := tx.ExecContext(s.ctx, "UPDATE books SET price = price + 1 WHERE id = 1")
			s.show(step+", write", resultText(res, err))
			s.show(step+", commit", tx.Commit())
			res, err = s.db.ExecContext(s.ctx, "UPDATE books SET price = price + 1 WHERE id = 2")
			s.show(step+", a write after it", resultText(res, err))
		}
	}
	s.show("left", rowsText(s.db.QueryContext(s.ctx, "SELECT id, price FROM books ORDER BY id")))
}

func endOfTransactions(s *side) {
	ends := map[string]func(*sql.Tx) error{"commit": (*sql.Tx).Commit, "rollback": (*sql.Tx).Rollback}
	for _, first := range []string{"commit", "rollback"} {
		for _, second := range []string{"commit", "rollback"} {
			step := first + ", " + second
			tx := must(s.db.BeginTx(context.Background(), nil))
			prepared := must(tx.PrepareContext(s.ctx, s.bind("UPDATE books SET price = ? WHERE id = 1")))
			s.show(step+", write", resultText(prepared.ExecContext(s.ctx, 40)))
			s.show(step, ends[first](tx), ends[second](tx))
			s.show(step+", exec after it", resultText(tx.ExecContext(s.ctx, "UPDATE books SET price = 50")))
			s.show(step+", query after it", rowsText(tx.QueryContext(s.ctx, "SELECT 1")))
			s.show(step+", its statement", resultText(prepared.ExecContext(s.ctx, 60)), prepared.Close())
			s.show(step+", left", rowsText(s.db.QueryContext(s.ctx, "SELECT id, price FROM books ORDER BY id")))
			s.exec("UPDATE books SET price = 10")
		}
	}
	// With rows open when it ends.
	tx := must(s.db.BeginTx(context.Background(), nil))
	rows := must(tx.QueryContext(s.ctx, "SELECT id FROM books ORDER BY id"))
	s.show("rows are open", rows.Next(), tx.Commit())
	s.show("rows after it", rows.Next(), rows.Close())
	s.show("pool", statsText(s.db.Stats()))
	// By statements, on one connection.
	c := must(s.db.Conn(s.ctx))
	defer c.Close()
	for _, query := range []string{"BEGIN", "UPDATE books SET price = 5 WHERE id = 1", "ROLLBACK", "ROLLBACK", "COMMIT"} {
		s.show("by statement: "+query, resultText(c.ExecContext(s.ctx, query)))
	}
	s.show("left", rowsText(c.QueryContext(s.ctx, "SELECT id, price FROM books ORDER BY id")))
}
