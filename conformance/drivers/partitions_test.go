package drivers

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// A table's rows may be written by the name of another of its inheritance tree.

// What makes such a table is refused where the text shows it.
func TestPartitionsAreNotAddedUnseen(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		if b.dialect != sqlfence.Postgres {
			t.Skip("they are PostgreSQL's")
		}
		s := newShop(t, b)
		s.exec(t, "DROP TABLE books")
		s.exec(t, "CREATE TABLE books (id integer, price integer, fence_token bigint) PARTITION BY LIST (id)")
		s.exec(t, "CREATE TABLE novels (id integer, price integer, fence_token bigint)")
		s.exec(t, "CREATE TABLE goods (id integer, price integer, fence_token bigint) PARTITION BY LIST (id)")
		db := b.fenced(t, s.source, books(sqlfence.RowFence("fence_token")), sqlfence.WithTable("novels", sqlfence.RowFence("fence_token")))
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
			for name, run := range ways {
				if err := run(holding(t, 9), db, query); !errors.Is(err, sqlfence.ErrUnguardable) {
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

// The documentation's example: the partitions and the parent are registered, too.
func TestRegisteredPartitions(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		if b.dialect != sqlfence.Postgres {
			t.Skip("they are PostgreSQL's")
		}
		s := newShop(t, b)
		s.exec(t, "DROP TABLE books")
		s.exec(t, "CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token bigint) PARTITION BY LIST (id)")
		s.exec(t, "CREATE TABLE books_1 PARTITION OF books DEFAULT")
		s.exec(t, "INSERT INTO books VALUES (1, 10, 9)")
		rules := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Resource("books")}
		db := b.fenced(t, s.source, sqlfence.WithTable("books", rules...), sqlfence.WithTable("books_1", rules...))
		for _, query := range []string{"UPDATE books SET price = 30", "UPDATE books_1 SET price = 30", "DELETE FROM ONLY books_1"} {
			if _, err := db.ExecContext(holding(t, 8), query); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("%s: %v, want ErrStale", query, err)
			}
		}
		if _, err := db.ExecContext(holding(t, 10), "UPDATE books_1 SET price = 30"); err != nil {
			t.Error(err)
		}
		if got := s.state(t, true); got != "1:30@10" {
			t.Errorf("books are %s", got)
		}
	})
}
