package errors_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A BEGIN inside an open transaction of the same connection is refused. MySQL would commit the first transaction's
// writes, and the first transaction's rollback would end the second one, whose next writes would then commit one by
// one.
func TestNoTransactionBeginsInAnOpenOne(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		s.Reset(t, 9)
		for range 20 {
			conn, err := s.DB.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(harness.Holding(t, 9))
			tx, err := conn.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1"); err != nil {
				t.Fatal(err)
			}
			if second, err := conn.BeginTx(t.Context(), nil); err == nil {
				t.Error("a second transaction has begun")
				_ = second.Rollback()
			}
			cancel()
			_ = tx.Rollback()
			_ = conn.Close()
			if got, want := s.State(t, false), "1:10 2:10 3:10"; got != want {
				t.Fatalf("left %s by transactions that were rolled back", got)
			}
		}
	})
}

// A failed BEGIN returns the driver's error, for example on SQLite while another connection writes. modernc then
// returns a nil pointer as the transaction.
func TestABeginThatFailsIsTheDriversError(t *testing.T) {
	for _, driver := range []string{"sqlite", "sqlite3"} {
		t.Run(driver, func(t *testing.T) {
			dsn := "file:" + filepath.Join(t.TempDir(), "shop.db") + "?_txlock=immediate&_busy_timeout=0"
			plain, err := sql.Open(driver, dsn)
			writer := harness.CloseAtEnd(t, plain, err)
			fenced, err := sqlfence.Open(driver, dsn, sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
			db := harness.CloseAtEnd(t, fenced, err)
			if _, err := writer.Exec("CREATE TABLE books (id integer PRIMARY KEY, fence_token bigint NOT NULL)"); err != nil {
				t.Fatal(err)
			}
			tx := harness.Begin(t.Context(), t, writer, sql.LevelDefault)
			if _, err := tx.Exec("INSERT INTO books VALUES (1, 0)"); err != nil {
				t.Fatal(err)
			}
			if _, err := db.BeginTx(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "locked") {
				t.Errorf("BEGIN while another connection writes: %v", err)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			second := harness.Begin(t.Context(), t, db, sql.LevelDefault)
			if err := second.Commit(); err != nil {
				t.Error(err)
			}
		})
	}
}
