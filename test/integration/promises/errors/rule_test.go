package errors_test

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// For a table with a rule DO ALSO, PostgreSQL expands a statement into several, and refuses a WITH clause, which the
// ledger's check needs. The error explains this. With a row fence the statement runs.
func TestErrorsOfRules(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("rules are PostgreSQL's")
		}
		s := harness.NewShop(t, b, sqlfence.Ledger())
		s.Reset(t, 5)
		s.Exec(t, "CREATE RULE copies AS ON UPDATE TO books DO ALSO INSERT INTO pens VALUES (OLD.id, NEW.price)")
		const query = "UPDATE books SET price = 30 WHERE id = 1"
		unchanged := s.Unchanged(t)
		for name, run := range harness.Ways {
			var refused *sqlfence.UnguardableError
			if err := run(harness.Holding(t, 5), s.DB, query); !errors.As(err, &refused) || harness.SQLState(err) != "0A000" || refused.Table != "books" {
				t.Errorf("%s: %v, want an UnguardableError by the database", name, err)
			}
		}
		unchanged()
		db := b.Fenced(t, s.Source, harness.Books(sqlfence.RowFence("fence_token")))
		if _, err := db.ExecContext(harness.Holding(t, 5), query); err != nil {
			t.Error(err)
		}
		// A mistake in the application's text is PostgreSQL's error, not a refusal.
		if _, err := s.DB.ExecContext(harness.Holding(t, 5), "WITH x AS (SELECT 1) "+query); errors.Is(err, sqlfence.ErrUnguardable) {
			t.Errorf("%v, want PostgreSQL's error alone", err)
		}
	})
}
