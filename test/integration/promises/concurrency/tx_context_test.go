package concurrency_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Existing code may pass the context with the token to BeginTx only. The test uses each function of database/sql that
// runs a statement in a transaction without a context.
func TestTransactionsTokens(t *testing.T) {
	ways := map[string]func(tx *sql.Tx, query string) error{
		"Exec":  func(tx *sql.Tx, query string) error { _, err := tx.Exec(query); return err },
		"Query": func(tx *sql.Tx, query string) error { return drain(tx.Query(query + " RETURNING id")) },
		"Prepare": func(tx *sql.Tx, query string) error {
			stmt, err := tx.Prepare(query) // closed at the end of the transaction
			if err != nil {
				return err
			}
			_, err = stmt.Exec()
			return err
		},
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for name, rule := range map[string]sqlfence.Rule{"row fence": sqlfence.RowFence("fence_token"), "ledger": sqlfence.Ledger()} {
			for way, run := range ways {
				if way == "Query" && !b.Returns() {
					continue
				}
				t.Run(name+"/"+way, func(t *testing.T) {
					sh := harness.Setting{Base: b}.Shop(t)
					sh.Exec(t, "INSERT INTO books (id) VALUES (1)")
					db := b.Fenced(t, sh.Source, harness.Books(rule))
					store := harness.NewStore(t, db)
					old := harness.IssueToken(t, store, "books")
					write := func(token int64, query string) error {
						tx, err := db.BeginTx(sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: token}), nil)
						if err != nil {
							return err
						}
						defer tx.Rollback()
						if err := run(tx, query); err != nil {
							return err
						}
						return tx.Commit()
					}
					if err := write(old, "UPDATE books SET price = 31"); err != nil {
						t.Fatalf("with the transaction's token: %v", err)
					}
					newest := harness.IssueToken(t, store, "books")
					if err := write(newest, "UPDATE books SET price = 32"); err != nil {
						t.Fatalf("with a newer one: %v", err)
					}
					if err := write(old, "UPDATE books SET price = 33"); !errors.Is(err, sqlfence.ErrStale) {
						t.Errorf("with the stale one: %v, want ErrStale", err)
					}
					if _, err := db.Exec("UPDATE books SET price = 34"); !errors.Is(err, sqlfence.ErrNoFence) {
						t.Errorf("after the transactions: %v, want ErrNoFence", err)
					}
					var wrong int
					if err := sh.Plain.QueryRow("SELECT count(*) FROM books WHERE price <> 32").Scan(&wrong); err != nil || wrong != 0 {
						t.Errorf("%d rows haven't the newest holder's price; %v", wrong, err)
					}
				})
			}
		}
	})
}

func drain(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	return errors.Join(rows.Err(), rows.Close())
}
