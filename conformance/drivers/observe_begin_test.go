package drivers

import (
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// A transaction that is begun by a statement lives on too, however that
// statement is written; and one that goes back to a savepoint is still one.
func TestObserveInTransactionByStatements(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		for _, begin := range []string{"BEGIN", "begin;", " BEGIN ", "BEGIN\nISOLATION LEVEL REPEATABLE READ", "BEGIN\tREAD WRITE",
			"START\nTRANSACTION", "/* app */ BEGIN", "-- app\nBEGIN", ";BEGIN", "BEGIN; SELECT 1"} {
			if b.dialect == sqlfence.SQLite && begin != "BEGIN" {
				continue // an error ends no transaction there
			}
			t.Run(begin, func(t *testing.T) {
				s := watch(t, b, observe, books(sqlfence.RowFence("fence_token")))
				s.clear(t, 9)
				c, err := s.db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if _, err := c.ExecContext(t.Context(), begin); err != nil {
					t.Fatal(err)
				}
				if _, err := c.ExecContext(holding(t, 8), "UPDATE books SET price = 30 WHERE id = 1"); err != nil {
					t.Error(err)
				}
				if _, err := c.ExecContext(t.Context(), "COMMIT"); err != nil {
					t.Error(err)
				}
				if got := s.state(t, true); got != "1:30@9 2:10@9 3:10@9" {
					t.Errorf("books are %s", got)
				}
			})
		}
		for _, back := range []string{"ROLLBACK TO SAVEPOINT a", "ROLLBACK TO a", "rollback transaction to a", "ROLLBACK\nTO a"} {
			t.Run(back, func(t *testing.T) {
				s := watch(t, b, observe, books(sqlfence.RowFence("fence_token")))
				s.clear(t, 9)
				s.db.SetMaxOpenConns(1)
				tx, err := s.db.BeginTx(t.Context(), &sql.TxOptions{})
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback()
				for _, query := range []string{"SAVEPOINT a", back, "UPDATE books SET price = 30 WHERE id = 1"} {
					if _, err := tx.ExecContext(holding(t, 8), query); err != nil {
						t.Fatalf("%s: %v", query, err)
					}
				}
				if err := tx.Commit(); err != nil {
					t.Error(err)
				}
				if got := s.state(t, true); got != "1:30@9 2:10@9 3:10@9" {
					t.Errorf("books are %s", got)
				}
			})
		}
	})
}
