package main

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/tokens"
)

// Sessions that wait for a name are listed with the blocking transaction, which has written under the name's token, or
// has locked the name's row.
func TestWaitsListsTheBlockingTransaction(t *testing.T) {
	const name = "bücher/o'neil"
	for dialect, fresh := range map[string]func(t testing.TB) (dsn string){"postgres": freshPostgres, "mysql": freshMySQL} {
		for what, keep := range map[string]func(ctx context.Context, tx *sql.Tx) error{
			"a write": func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1")
				return err
			},
			"the row": func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(sqlfence.Bypass(ctx, "test"), "SELECT token FROM fencing_tokens FOR UPDATE")
				return err
			},
		} {
			t.Run(dialect+"/"+what, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				source, err := database.Parse(fresh(t), false)
				if err != nil {
					t.Fatal(err)
				}
				db, err := source.Open(sqlfence.WithTable("books", sqlfence.Resource(name), sqlfence.Ledger()))
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				execute(t, db, "CREATE TABLE books (id integer PRIMARY KEY, price bigint)")
				store, err := tokens.New(db)
				if err == nil {
					err = store.Setup(ctx)
				}
				if err != nil {
					t.Fatal(err)
				}
				token, err := store.Issue(ctx, name)
				if err != nil {
					t.Fatal(err)
				}
				if found, err := source.Waits(ctx, db); err != nil || len(found) > 0 {
					t.Fatalf("%v, %v; want none", found, err)
				}

				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := keep(sqlfence.WithFence(ctx, token), tx); err != nil {
					t.Fatal(err)
				}
				issued := make(chan error, 1)
				go func() {
					_, err := store.Issue(ctx, name)
					issued <- err
				}()
				var found []database.Wait
				for len(found) == 0 {
					if found, err = source.Waits(ctx, db); err != nil {
						t.Fatal(err)
					}
					// MariaDB returns cached rows until the rows haven't been read for 100 ms.
					time.Sleep(150 * time.Millisecond)
				}
				w := found[0]
				if w.Name != name || !strings.Contains(w.Who, "pid ") || !strings.Contains(w.For, "pid ") || w.Who == w.For ||
					w.Does != "idle in transaction" {
					t.Errorf("%+v", found)
				}
				for _, at := range []string{w.Since, w.Began} {
					if _, err := time.Parse("2006-01-02T15:04:05.000Z", at); err != nil {
						t.Error(err)
					}
				}
				if err := tx.Rollback(); err != nil {
					t.Error(err)
				}
				if err := <-issued; err != nil {
					t.Error(err)
				}
			})
		}
	}
}
