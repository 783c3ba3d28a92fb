package group_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/sqlfence/sqlfence"
	seals "github.com/sqlfence/sqlfence/schema"
)

// If a transaction continues after a failed statement, a Galera node without a binary log replicates changes of that
// statement to the other nodes: changes of rows with triggers, which the node itself has rolled back. This is why
// sqlfence doesn't commit a transaction after a refusal. This test fails on a version of MariaDB in which the defect is
// fixed.
func TestGaleraLeaks(t *testing.T) {
	c := withTriggers(t)
	if !c.leaks(t) {
		t.Skip("the node has a binary log")
	}
	tx, err := c.plain[1].Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("UPDATE books SET price = price + 1 WHERE IF(id = 3, (SELECT 1 UNION SELECT 2), 1)"); err == nil {
		t.Fatal("the statement hasn't failed")
	}
	if _, err := tx.Exec("UPDATE books SET price = 9 WHERE id = 3"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if here, there := c.rows(t, 1), c.rows(t, 0); here == there {
		t.Errorf("both nodes have %s", here)
	}
}

// A transaction must not be committed after a refusal, whichever way it began. In Observe mode the refused statement is
// sent again after a rollback to a savepoint. All nodes must have the same rows.
func TestRefusalsDoNotLeak(t *testing.T) {
	for _, test := range []struct {
		name  string
		mode  sqlfence.Mode
		write func(t *testing.T, db *sql.DB)
		want  string // the price and the fence column of each row
	}{
		{"refused, and committed", sqlfence.Enforce, func(t *testing.T, db *sql.DB) {
			tx := begin(t, db)
			if _, err := tx.ExecContext(holding(7), bulk); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("%v, want ErrStale", err)
			}
			if _, err := tx.ExecContext(holding(9), "UPDATE books SET price = 5 WHERE id = 3"); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("a write behind it: %v, want ErrStale", err)
			}
			if _, err := tx.Exec("INSERT INTO log (id) VALUES (77)"); err != nil {
				t.Error(err)
			}
			if err := tx.Commit(); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("Commit: %v, want ErrStale", err)
			}
		}, "1:0@0 2:0@0 3:0@8; "},
		{"refused, and rolled back", sqlfence.Enforce, func(t *testing.T, db *sql.DB) {
			tx := begin(t, db)
			if _, err := tx.ExecContext(holding(7), bulk); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("%v, want ErrStale", err)
			}
			if err := tx.Rollback(); err != nil {
				t.Error(err)
			}
			if err := write(holding(9), db, true, 5); err != nil {
				t.Errorf("the next transaction: %v", err)
			}
		}, "1:5@9 2:5@9 3:5@9; 1 2 3"},
		{"with rows", sqlfence.Enforce, func(t *testing.T, db *sql.DB) {
			tx := begin(t, db)
			rows, err := tx.QueryContext(holding(7), "DELETE FROM books RETURNING id")
			for err == nil && rows.Next() {
			}
			if err == nil {
				err = rows.Err()
			}
			if !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("%v, want ErrStale", err)
			}
			if err := tx.Commit(); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("Commit: %v, want ErrStale", err)
			}
		}, "1:0@0 2:0@0 3:0@8; "},
		{"begun by a text", sqlfence.Enforce, func(t *testing.T, db *sql.DB) {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.ExecContext(t.Context(), "BEGIN"); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.ExecContext(holding(7), bulk); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("%v, want ErrStale", err)
			}
			for _, text := range []string{"INSERT INTO log (id) VALUES (77)", "COMMIT"} {
				if _, err := conn.ExecContext(t.Context(), text); err == nil {
					t.Errorf("%s behind it", text)
				}
			}
		}, "1:0@0 2:0@0 3:0@8; "},
		{"by itself", sqlfence.Enforce, func(t *testing.T, db *sql.DB) {
			if _, err := db.ExecContext(holding(7), bulk); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("%v, want ErrStale", err)
			}
			if err := write(holding(9), db, false, 5); err != nil {
				t.Error(err)
			}
		}, "1:5@9 2:5@9 3:5@9; 1 2 3"},
		{"observed", sqlfence.Observe, func(t *testing.T, db *sql.DB) {
			tx := begin(t, db)
			for range 2 {
				if _, err := tx.ExecContext(holding(7), bulk); err != nil {
					t.Error(err)
				}
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
		}, "1:2@0 2:2@0 3:2@8; 1 1 2 2 3 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := withTriggers(t)
			if !c.leaks(t) {
				t.Skip("the node has a binary log")
			}
			db, err := sqlfence.Open("mysql", c.dsn[1], sqlfence.WithMode(test.mode), sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			test.write(t, db)
			for node := range c.plain {
				if got := c.rows(t, node); got != test.want {
					t.Errorf("node %d has %s, want %s", node+1, got, test.want)
				}
			}
		})
	}
}

// Another program adds or removes the seal after sqlfence has read the table, and another trigger writes before the
// seal's trigger fails. sqlfence must not commit this transaction; Retry must run it again.
func TestSealsDoNotLeak(t *testing.T) {
	c := withTriggers(t)
	if !c.leaks(t) {
		t.Skip("the node has a binary log")
	}
	run(t, c.plain[0], "CREATE TRIGGER before_it BEFORE UPDATE ON books FOR EACH ROW INSERT INTO log (id) VALUES (100 + NEW.id)")
	open := func(node int) *sql.DB { return c.fence(t, node, sqlfence.RowFence("fence_token"), sqlfence.Sealed()) }
	db := open(1)
	if err := write(holding(7), db, true, 1); err == nil {
		t.Fatal("a stale write of the third row")
	}
	if err := seals.Seal(t.Context(), open(1)); err != nil { // through another program's pool
		t.Fatal(err)
	}
	ignoring := begin(t, db)
	if _, err := ignoring.ExecContext(holding(9), bulk); err == nil {
		t.Error("the seal wasn't met")
	}
	if err := ignoring.Commit(); err == nil {
		t.Error("a transaction was committed behind it")
	}
	if err := seals.Unseal(t.Context(), open(1)); err != nil {
		t.Fatal(err)
	}
	runs := 0
	err := sqlfence.Retry(holding(9), db, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		runs++
		_, err := tx.ExecContext(ctx, bulk)
		return err
	})
	if err != nil || runs > 2 {
		t.Errorf("%d runs: %v", runs, err)
	}
	for node := range c.plain {
		if got, want := c.rows(t, node), "1:1@9 2:1@9 3:1@9; 1 2 3 101 102 103"; got != want {
			t.Errorf("node %d has %s, want %s", node+1, got, want)
		}
	}
}

// bulk updates all rows. Under a token below 8 it is stale for the last row.
const bulk = "UPDATE books SET price = price + 1"

// withTriggers returns a Galera cluster on which triggers insert a row into log for each updated or deleted book.
func withTriggers(t *testing.T) *cluster {
	t.Helper()
	c := start(t)
	c.of(t, galera)
	for _, text := range []string{
		"UPDATE books SET fence_token = 8 WHERE id = 3",
		"CREATE TABLE log (n bigint PRIMARY KEY AUTO_INCREMENT, id bigint)",
		"CREATE TRIGGER logged AFTER UPDATE ON books FOR EACH ROW INSERT INTO log (id) VALUES (NEW.id)",
		"CREATE TRIGGER deleted AFTER DELETE ON books FOR EACH ROW INSERT INTO log (id) VALUES (-OLD.id)",
	} {
		run(t, c.plain[0], text)
	}
	c.price(t, 1, 1)
	return c
}

// leaks reports whether the first node is a Galera node without a binary log.
func (c *cluster) leaks(t *testing.T) (leaks bool) {
	t.Helper()
	if err := c.plain[0].QueryRow("SELECT NOT @@log_bin").Scan(&leaks); err != nil {
		t.Fatal(err)
	}
	return leaks && c.kind == galera
}

// rows returns the rows of both tables on a node, including everything committed before on any node.
func (c *cluster) rows(t *testing.T, node int) string {
	t.Helper()
	var books, log sql.NullString
	const all = "SELECT (SELECT GROUP_CONCAT(id, ':', price, '@', fence_token ORDER BY id SEPARATOR ' ') FROM books), " +
		"(SELECT GROUP_CONCAT(id ORDER BY id SEPARATOR ' ') FROM log)"
	if err := c.plain[node].QueryRow(all).Scan(&books, &log); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s; %s", books.String, log.String)
}

func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}
