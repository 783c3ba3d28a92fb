package statements_test

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Other tables of an inheritance tree may contain a registered table's rows, so rows may be written by another name.

// A statement that creates a partition of a registered table is refused if its text shows this.
func TestPartitionsAreNotAddedUnseen(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("they are PostgreSQL's")
		}
		s := harness.NewShop(t, b)
		s.Exec(t, "DROP TABLE books")
		s.Exec(t, "CREATE TABLE books (id integer, price integer, fence_token bigint) PARTITION BY LIST (id)")
		s.Exec(t, "CREATE TABLE novels (id integer, price integer, fence_token bigint)")
		s.Exec(t, "CREATE TABLE goods (id integer, price integer, fence_token bigint) PARTITION BY LIST (id)")
		db := b.Fenced(t, s.Source, harness.Books(sqlfence.RowFence("fence_token")), sqlfence.WithTable("novels", sqlfence.RowFence("fence_token")))
		for _, query := range []string{
			"CREATE TABLE books_1 PARTITION OF books FOR VALUES IN (1)",
			"CREATE TEMPORARY TABLE IF NOT EXISTS books_1 PARTITION OF books DEFAULT",
			"CREATE TABLE books_1 PARTITION\n/* a */ OF\nbooks DEFAULT PARTITION BY LIST (id)",
			"CREATE TABLE rare (worth integer) INHERITS (novels)",
			"CREATE TABLE rare () inherits(pens, novels) WITH (fillfactor = 70)",
			"ALTER TABLE books ATTACH PARTITION novels FOR VALUES IN (1)",
			"ALTER TABLE goods ATTACH PARTITION novels DEFAULT",
			"ALTER TABLE pens INHERIT novels",
			"CREATE TABLE novels_2 (id integer); ALTER TABLE novels_2 INHERIT novels",
			"CREATE SCHEMA far CREATE TABLE books_1 PARTITION OF books DEFAULT",
		} {
			for name, run := range harness.Ways {
				if err := run(harness.Holding(t, 9), db, query); !errors.Is(err, sqlfence.ErrUnguardable) {
					t.Errorf("%s by %s: %v", query, name, err)
				}
			}
		}
		for _, query := range []string{"CREATE TABLE books_like (LIKE books)", "CREATE TABLE goods_1 PARTITION OF goods FOR VALUES IN (1)"} {
			if _, err := db.ExecContext(t.Context(), query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
		}
	})
}

// The example of the documentation: the parent and its partitions are registered.
func TestRegisteredPartitions(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("they are PostgreSQL's")
		}
		s := harness.NewShop(t, b)
		s.Exec(t, "DROP TABLE books")
		s.Exec(t, "CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token bigint) PARTITION BY LIST (id)")
		s.Exec(t, "CREATE TABLE books_1 PARTITION OF books DEFAULT")
		s.Exec(t, "INSERT INTO books VALUES (1, 10, 9)")
		rules := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Resource("books")}
		db := b.Fenced(t, s.Source, sqlfence.WithTable("books", rules...), sqlfence.WithTable("books_1", rules...))
		for _, query := range []string{"UPDATE books SET price = 30", "UPDATE books_1 SET price = 30", "DELETE FROM ONLY books_1"} {
			if _, err := db.ExecContext(harness.Holding(t, 8), query); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("%s: %v, want ErrStale", query, err)
			}
		}
		if _, err := db.ExecContext(harness.Holding(t, 10), "UPDATE books_1 SET price = 30"); err != nil {
			t.Error(err)
		}
		if got := s.State(t, true); got != "1:30@10" {
			t.Errorf("books are %s", got)
		}
	})
}
