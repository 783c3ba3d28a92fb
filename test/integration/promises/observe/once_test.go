package observe_test

import (
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Observe mode doesn't send a statement again that has failed and left some of its changes: they would be made twice.
func TestObserveRunsNothingTwice(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("a failed statement leaves nothing in PostgreSQL")
		}
		w := harness.Watch(t, b, harness.ObserveMode, harness.Books(sqlfence.RowFence("fence_token")))
		w.Reset(t, 9)
		w.Exec(t, "CREATE TRIGGER stops BEFORE UPDATE ON books WHEN new.id = 3 BEGIN SELECT RAISE(FAIL, 'no third'); END")
		for query, left := range map[string]string{
			"UPDATE books SET price = price + 1":                       "1:11@10 2:11@10 3:10@9",
			"UPDATE OR FAIL books SET isbn = 'i3', price = price + 1":  "1:10@9 2:10@9 3:10@9",
			"UPDATE OR FAIL books SET price = price + 1 WHERE id <> 0": "1:11@10 2:11@10 3:10@9",
		} {
			for name, run := range harness.Ways {
				w.Clear(t, 9)
				if err := run(harness.Holding(t, 10), w.DB, query); err == nil {
					t.Errorf("%s by %s: no error", query, name)
				}
				if got := w.State(t, true); got != left {
					t.Errorf("%s by %s left %s, want %s", query, name, got, left)
				}
				w.WantEvents(t, query, nil)
			}
		}
		// OR ROLLBACK has ended the transaction: if Observe mode sent the UPDATE again, it would be committed at once.
		w.Clear(t, 9)
		w.Exec(t, "CREATE TABLE marked (id integer PRIMARY KEY, isbn text, price integer DEFAULT 10, fence_token bigint CHECK (fence_token < 10))")
		w.Exec(t, "INSERT INTO marked SELECT id, isbn, price, fence_token FROM books")
		w.Exec(t, "DROP TABLE books")
		w.Exec(t, "ALTER TABLE marked RENAME TO books")
		tx, err := w.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(harness.Holding(t, 10), "UPDATE OR ROLLBACK books SET price = 30 WHERE id = 1"); err == nil {
			t.Error("no error")
		}
		_ = tx.Rollback() // there is none
		if got := w.State(t, true); got != "1:10@9 2:10@9 3:10@9" {
			t.Errorf("books are %s", got)
		}
	})
}

// In a transaction SQLite keeps the rows that an INSERT wrote before a value of the wrong type for a STRICT table.
func TestObserveInsertsNoRowTwiceAfterATypeError(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("only SQLite has STRICT tables")
		}
		w := harness.Watch(t, b, harness.ObserveMode, harness.Books(sqlfence.RowFence("fence_token")))
		w.Reset(t, 9)
		w.Exec(t, "DROP TABLE books")
		w.Exec(t, "CREATE TABLE books (id integer PRIMARY KEY, isbn text, price integer DEFAULT 10, fence_token integer) STRICT")
		for _, query := range []string{
			"INSERT INTO books (isbn) VALUES ('a'), (x'62')", "INSERT OR IGNORE INTO books (isbn) VALUES ('a'), (x'62')",
		} {
			tx, err := w.DB.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(harness.Holding(t, 10), query); err == nil {
				t.Errorf("%s: no error", query)
			}
			var rows int
			if err := tx.QueryRow("SELECT count(*) FROM books").Scan(&rows); err != nil || rows > 1 {
				t.Errorf("%s: %d rows, %v; want at most 1", query, rows, err)
			}
			if err := tx.Rollback(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestObserveOnAFullDisk(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("a failed statement ends no other transaction in PostgreSQL")
		}
		w := harness.Watch(t, b, harness.ObserveMode, harness.Books(sqlfence.RowFence("fence_token")))
		w.Clear(t, 9)
		c, err := w.DB.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fill := func(bytes int) error {
			_, err := c.ExecContext(harness.Holding(t, 10), "INSERT INTO books (isbn, price) VALUES (zeroblob(?), 20)", bytes)
			return err
		}
		for _, query := range []string{"PRAGMA max_page_count = 90", "BEGIN"} {
			if _, err := c.ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		if err := fill(120_000); err != nil {
			t.Fatal(err)
		}
		// The database has room for one of the two rows. The error has undone the first INSERT, so if Observe mode sent
		// the second one again, it would succeed.
		if err := fill(120_001); err == nil {
			t.Error("the database is full, and there was no error")
		}
		if got := w.State(t, true); got != "1:10@9 2:10@9 3:10@9" {
			t.Errorf("books are %s", got)
		}
	})
}

// If the driver can't read a row, the statement itself hasn't failed, so Observe mode doesn't run it again.
func TestObserveRunsOnceWhatCannotBeRead(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Name != "pq" {
			t.Skip("only lib/pq reads dates as text")
		}
		w := harness.Watch(t, b, harness.ObserveMode, harness.Books(sqlfence.RowFence("fence_token")))
		w.DB.SetMaxOpenConns(1)
		w.Clear(t, 9)
		if _, err := w.DB.ExecContext(t.Context(), "SET datestyle TO german"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"query", "prepared query"} {
			err := harness.Ways[name](harness.Holding(t, 9), w.DB, "UPDATE books SET price = price + 1 WHERE id = 1 RETURNING '2020-01-02 03:04:05.25+00'::timestamptz")
			if err == nil {
				t.Fatalf("by %s the driver reads the date", name)
			}
		}
		if got := prices(t, w); !strings.HasPrefix(got, "1:12 ") {
			t.Errorf("prices are %s; want 1:12", got)
		}
	})
}

// A statement that has run into a timeout isn't run again: that would take twice as long, and the guard isn't the
// cause.
func TestObserveRunsOnceWhatTimesOut(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("SQLite has no statement_timeout")
		}
		w := harness.Watch(t, b, harness.ObserveMode, harness.Books(sqlfence.RowFence("fence_token")))
		w.DB.SetMaxOpenConns(1)
		w.Clear(t, 9)
		for _, query := range []string{
			"UPDATE books SET price = 10 WHERE id = 1", // the session's own query comes before the timeout
			"SET statement_timeout TO '50ms'",
		} {
			if _, err := w.DB.ExecContext(harness.Holding(t, 9), query); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"exec", "exec in a transaction"} {
			sent := 0
			harness.Eventually(t, "it is sent, and runs into the timeout", func() bool { // if busy, it times out earlier
				w.Counter.Reset()
				w.Events = nil
				if err := sleeps(t, w, name != "exec"); err == nil {
					t.Fatalf("%s: no error", name)
				}
				for _, text := range w.Counter.Texts() {
					if strings.Contains(text, "pg_sleep") {
						sent++
					}
				}
				return sent > 0
			})
			if sent != 1 {
				t.Errorf("%s: sent %d times: %q", name, sent, w.Counter.Texts())
			}
			if len(w.Events) > 0 {
				t.Errorf("%s: the observer was told %v", name, w.Events)
			}
		}
	})
}

// sleeps executes a statement that sleeps for an hour.
func sleeps(t *testing.T, w *harness.Watched, inTx bool) error {
	const query = "UPDATE books SET price = 30 WHERE id = 1 AND pg_sleep(3600) IS NOT NULL"
	if !inTx {
		_, err := w.DB.ExecContext(harness.Holding(t, 10), query)
		return err
	}
	tx, err := w.DB.BeginTx(t.Context(), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	_, err = tx.ExecContext(harness.Holding(t, 10), query)
	return err
}
