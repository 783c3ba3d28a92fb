package errors_test

import (
	"database/sql"
	"reflect"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Some drivers can't send a statement while rows are open. Then a guarded write fails with the driver's own error, even
// if sqlfence must query the server before the first guarded write.
func TestErrorBesideOpenRowsIsTheDrivers(t *testing.T) {
	rules := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger()}
	harness.EachDriver(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b, rules...)
		sh.Exec(t, "INSERT INTO books (id, price) VALUES (1, 10), (2, 10)")
		sh.Raise(t, "books", 7)
		write := func(db *sql.DB) error {
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			rows, err := tx.Query("SELECT id FROM books ORDER BY id")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			if !rows.Next() {
				t.Fatal(rows.Err())
			}
			_, err = tx.ExecContext(harness.Holding(t, 7), "UPDATE books SET price = 20 WHERE id = 1")
			return err
		}
		bare, fenced := write(b.Raw(t, sh.Source)), write(b.Fenced(t, sh.Source, harness.Books(rules...)))
		if reflect.TypeOf(bare) != reflect.TypeOf(fenced) || bare != nil && bare.Error() != fenced.Error() {
			t.Errorf("bare %T %v, fenced %T %v", bare, bare, fenced, fenced)
		}
	})
}
