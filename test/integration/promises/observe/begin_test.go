package observe_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// In Observe mode a transaction that the application begins by a statement survives a stale write, however the BEGIN is
// spelled. A transaction that goes back to a savepoint is still recognized as one.
func TestObserveInTransactionByStatements(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, begin := range []string{"BEGIN", "begin;", " BEGIN ", "BEGIN\nISOLATION LEVEL REPEATABLE READ", "BEGIN\tREAD WRITE",
			"START\nTRANSACTION", "/* app */ BEGIN", "-- app\nBEGIN", ";BEGIN", "BEGIN; SELECT 1"} {
			if b.Dialect == sqlfence.SQLite && begin != "BEGIN" {
				continue // an error doesn't end SQLite's transactions
			}
			t.Run(begin, func(t *testing.T) {
				s := harness.Watch(t, b, harness.ObserveMode, harness.Books(sqlfence.RowFence("fence_token")))
				s.Clear(t, 9)
				onlyIfRead(t, s.Shop, begin)
				c, err := s.DB.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if _, err := c.ExecContext(t.Context(), begin); err != nil {
					t.Fatal(err)
				}
				if _, err := c.ExecContext(harness.Holding(t, 8), "UPDATE books SET price = 30 WHERE id = 1"); err != nil {
					t.Error(err)
				}
				if _, err := c.ExecContext(t.Context(), "COMMIT"); err != nil {
					t.Error(err)
				}
				if got := s.State(t, true); got != "1:30@9 2:10@9 3:10@9" {
					t.Errorf("books are %s", got)
				}
			})
		}
		for _, back := range []string{"ROLLBACK TO SAVEPOINT a", "ROLLBACK TO a", "rollback transaction to a", "ROLLBACK\nTO a"} {
			t.Run(back, func(t *testing.T) {
				s := harness.Watch(t, b, harness.ObserveMode, harness.Books(sqlfence.RowFence("fence_token")))
				s.Clear(t, 9)
				onlyIfRead(t, s.Shop, "SAVEPOINT a", back)
				s.DB.SetMaxOpenConns(1)
				tx, err := s.DB.BeginTx(t.Context(), &sql.TxOptions{})
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback()
				for _, query := range []string{"SAVEPOINT a", back, "UPDATE books SET price = 30 WHERE id = 1"} {
					if _, err := tx.ExecContext(harness.Holding(t, 8), query); err != nil {
						t.Fatalf("%s: %v", query, err)
					}
				}
				if err := tx.Commit(); err != nil {
					t.Error(err)
				}
				if got := s.State(t, true); got != "1:30@9 2:10@9 3:10@9" {
					t.Errorf("books are %s", got)
				}
			})
		}
	})
}

// onlyIfRead skips the test if the database can't parse the statements, as MySQL with some spellings.
func onlyIfRead(t *testing.T, s *harness.Shop, queries ...string) {
	t.Helper()
	if s.Dialect != sqlfence.MySQL {
		return
	}
	tx, err := s.Plain.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for _, query := range queries {
		if _, err := tx.ExecContext(t.Context(), query); err != nil {
			t.Skip(err)
		}
	}
}

// A statement that neither begins nor ends a transaction doesn't change how the session's later writes are guarded.
func TestObserveNoTransactionByStatements(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect == sqlfence.SQLite {
			return // an error doesn't end SQLite's transactions
		}
		s := harness.Watch(t, b, harness.ObserveMode, harness.Books(sqlfence.RowFence("fence_token")))
		for _, tt := range []struct {
			name            string
			queries         []string
			prepared, fails bool
		}{
			{name: "begin that fails", queries: []string{"BEGIN ISOLATION LEVEL FOO"}, fails: true},
			{name: "failed transaction", queries: []string{"BEGIN", "SELECT 1 / 0", "COMMIT"}, fails: true},
			{name: "prepared", queries: []string{"BEGIN"}, prepared: true},
			{name: "prepared, twice", queries: []string{"BEGIN", "COMMIT", "BEGIN"}, prepared: true},
			{name: "function's body", queries: []string{"BEGIN", "CREATE FUNCTION two() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT 2; END"}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				s.Clear(t, 9)
				if !tt.fails {
					onlyIfRead(t, s.Shop, tt.queries...)
				}
				c, err := s.DB.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				for _, query := range tt.queries {
					if tt.prepared {
						stmt, prepareErr := c.PrepareContext(t.Context(), query)
						if err = prepareErr; err == nil {
							defer stmt.Close()
							_, err = stmt.ExecContext(t.Context())
						}
					} else {
						_, err = c.ExecContext(t.Context(), query)
					}
					if b.Dialect == sqlfence.MySQL && tt.prepared && err != nil && strings.Contains(err.Error(), "1295") {
						t.Skip(err) // MySQL prepares no BEGIN; MariaDB does
					}
					if err != nil && !tt.fails {
						t.Fatalf("%s: %v", query, err)
					}
				}
				if _, err := c.ExecContext(harness.Holding(t, 8), "UPDATE books SET price = 30 WHERE id = 1"); err != nil {
					t.Error(err)
				}
				if _, err := c.ExecContext(t.Context(), "COMMIT"); err != nil {
					t.Error(err)
				}
				if got := s.State(t, true); got != "1:30@9 2:10@9 3:10@9" {
					t.Errorf("books are %s", got)
				}
			})
		}
	})
}
