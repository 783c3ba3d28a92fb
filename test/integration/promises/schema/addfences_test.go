package schema_test

import (
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// AddFences gives each registered table its fence column, and doesn't change an existing column.
func TestAddFences(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, plain *sql.DB) {
		for _, query := range []string{
			"CREATE TABLE books (id integer PRIMARY KEY)", "INSERT INTO books VALUES (1)",
			"CREATE TABLE pens (id integer PRIMARY KEY, mark bigint NOT NULL DEFAULT 0)", "INSERT INTO pens VALUES (1, 7)",
			"CREATE TABLE hats (id integer PRIMARY KEY)",
		} {
			harness.MustExec(t, plain, query)
		}
		db := b.Fenced(t, dsn, sqlfence.WithTable("books", sqlfence.RowFence("fence_token")),
			sqlfence.WithTable("hats", sqlfence.Ledger()), sqlfence.WithTable("pens", sqlfence.RowFence("mark")))
		for range 2 {
			if err := schema.AddFences(t.Context(), db); err != nil {
				t.Fatal(err)
			}
		}
		for query, want := range map[string]int64{
			"SELECT fence_token FROM books": 0, "SELECT mark FROM pens": 7,
		} {
			var mark int64
			if err := plain.QueryRowContext(t.Context(), query).Scan(&mark); err != nil || mark != want {
				t.Errorf("%s: %d, %v, want %d", query, mark, err, want)
			}
		}
		lost := b.Fenced(t, dsn, sqlfence.WithTable("lost", sqlfence.RowFence("fence_token")))
		if err := schema.AddFences(t.Context(), lost); err == nil {
			t.Error("no error for a table that isn't there")
		}
		harness.WantError(t, schema.AddFences(t.Context(), b.Raw(t, dsn)), sqlfence.ErrInvalid)
		harness.WantError(t, schema.AddFences(t.Context(), nil), sqlfence.ErrInvalid)
	})
}
