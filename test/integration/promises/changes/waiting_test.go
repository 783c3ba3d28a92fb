package changes_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// levels are the isolation levels of the writers.
var levels = []sql.IsolationLevel{sql.LevelDefault, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

// eachServer is EachBase for the databases with more than one writer.
func eachServer(t *testing.T, test func(t *testing.T, b harness.Base)) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !b.Networked() {
			t.Skip("a file has one writer")
		}
		test(t, b)
	})
}

// No writer waits for another one or fails, while many write to different rows of the same table at once and keep their
// transactions open. Both a connection's first write and later writes are tried.
func TestNoWriterWaits(t *testing.T) {
	eachServer(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		counter := setup(t, db)
		for i := range 20 {
			exec(t, db, fmt.Sprintf("INSERT INTO books (id, price) VALUES (%d, 10)", 100+i))
		}
		fresh := 1000
		for _, level := range levels {
			t.Run(level.String(), func(t *testing.T) {
				for round := range 2 {
					var open []*sql.Tx
					for i := range 20 {
						tx := begin(t, db, level)
						within(t, b, db, fmt.Sprintf("round %d, pen %d", round, i), func() error {
							fresh++
							_, err := tx.Exec(fmt.Sprintf("INSERT INTO pens (id, price) VALUES (%d, 10)", fresh))
							return err
						})
						open = append(open, tx)
					}
					slices.Reverse(open) // later transactions then write first to the counter's next row
					for i, tx := range open {
						within(t, b, db, fmt.Sprintf("round %d, book %d", round, i), func() error {
							fresh++
							_, err := tx.Exec(fmt.Sprintf("INSERT INTO books (id, price) VALUES (%d, 10)", fresh))
							if err == nil && level != sql.LevelSerializable { // UPDATEs conflict there
								_, err = tx.Exec(fmt.Sprintf("UPDATE books SET price = price + 1 WHERE id = %d", 100+i))
							}
							return err
						})
					}
					wantSame(t, counter, "what isn't committed", func() {})
					for i := range open { // the reverse order, so that a commit comes while earlier ones are open
						tx := open[len(open)-1-i]
						wantRaised(t, counter, "a commit", func() { commit(t, tx) })
					}
				}
			})
		}
	})
}

// A connection writes to the table for the first time while other connections have open writes, and doesn't wait for
// them.
func TestFirstWriteDoesNotWait(t *testing.T) {
	eachServer(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		setup(t, db)
		var conns []*sql.Conn
		for i := range 10 {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO pens (id, price) VALUES (%d, 10)", i)); err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
		}
		slices.Reverse(conns)
		for i, conn := range conns {
			for round, query := range []string{"INSERT INTO books (id, price) VALUES (%d, 10)", "BEGIN", "UPDATE books SET price = 11 WHERE id = %d"} {
				if strings.Contains(query, "%") {
					query = fmt.Sprintf(query, 100+i)
				}
				within(t, b, db, fmt.Sprintf("connection %d, statement %d", i, round), func() error {
					_, err := conn.ExecContext(t.Context(), query)
					return err
				})
			}
			defer func() { _, _ = conn.ExecContext(context.Background(), "ROLLBACK") }()
		}
	})
}

// within calls do, and fails the test if it waits for another session's lock or fails.
func within(t *testing.T, b harness.Base, db *sql.DB, what string, do func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	harness.Eventually(t, what, func() bool {
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			return true
		default:
		}
		if b.Waiting(t, db) > 0 {
			t.Fatalf("%s waits for another one", what)
		}
		return false
	})
}

// A control for the tests above: with a shared counter row two sessions wait for each other.
func TestWritersOfOneRowWait(t *testing.T) {
	eachServer(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		setup(t, db)
		same := "SET @sqlfence_changes_slot = 7"
		if b.Dialect == sqlfence.Postgres {
			same = "SET sqlfence.changes_slot = '7'"
		}
		var conns []*sql.Conn
		for range 2 {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.ExecContext(t.Context(), same); err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
		}
		first, err := conns[0].BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer first.Rollback()
		exec(t, first, "UPDATE books SET price = 11 WHERE id = 1")
		done := make(chan error, 1)
		go func() {
			_, err := conns[1].ExecContext(context.Background(), "UPDATE books SET price = 11 WHERE id = 2")
			done <- err
		}()
		harness.Eventually(t, "the second one waits", func() bool {
			select {
			case err := <-done:
				t.Fatalf("the second one didn't wait: %v", err)
			default:
			}
			return b.Waiting(t, db) > 0
		})
		commit(t, first)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
