package sealed_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A table's own foreign key deletes rows. These are compared with the token of the DELETE that caused this.
func TestCascadeWithinATable(t *testing.T) {
	l := newUnsealed(t, harness.Bases[1])
	l.exec(t, "ALTER TABLE books ADD parent integer REFERENCES books (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED")
	l.exec(t, "UPDATE books SET parent = 3, fence_token = 9 WHERE id = 1")
	l.seal(t)
	const query = "DELETE FROM books WHERE id = 3"
	if _, err := l.db.ExecContext(holding(t, 8), query); !errors.Is(err, sqlfence.ErrStale) {
		t.Error(err)
	}
	l.want(t, "1:10@9 2:10@7 3:10@0")
	if _, err := l.db.ExecContext(holding(t, 9), query); err != nil {
		t.Error(err)
	}
	l.want(t, "2:10@7")
}

// In a sealed table with partitions each partition is sealed, and a row may move.
func TestPartitions(t *testing.T) {
	for _, b := range harness.Chosen(postgres) {
		l := newUnsealed(t, b)
		l.exec(t, `CREATE TABLE parts (id integer, region text, price integer DEFAULT 10, fence_token bigint NOT NULL DEFAULT 0, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
			CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a');
			CREATE TABLE parts_b PARTITION OF parts FOR VALUES IN ('b');
			INSERT INTO parts VALUES (1, 'a', 10, 7), (2, 'a', 10, 7), (3, 'b', 10, 7)`)
		db := l.Fenced(t, l.dsn, sqlfence.WithTable("parts", sqlfence.Resource("books"), sqlfence.RowFence("fence_token"), sqlfence.Sealed()))
		if err := schema.Seal(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		content := func() (all string) {
			t.Helper()
			err := l.plain.QueryRow("SELECT string_agg(concat(tableoid::regclass, ' ', id, ':', price, '@', fence_token), ', ' ORDER BY id) FROM parts").Scan(&all)
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		before := content()
		for _, query := range []string{
			"UPDATE parts SET price = 99",
			"UPDATE parts_a SET price = 99",
			"UPDATE parts SET region = 'b' WHERE id = 1",
			"UPDATE parts SET region = 'b', fence_token = -6 WHERE id = 1",
			"INSERT INTO parts VALUES (9, 'a', 99, 7)",
			"INSERT INTO parts_a VALUES (9, 'a', 99, 7)",
			"DELETE FROM parts",
			"DELETE FROM parts_b",
			"TRUNCATE parts_b",
			"BEGIN; UPDATE parts SET price = 11, fence_token = -7 WHERE id = 1; INSERT INTO parts_a VALUES (9, 'a', 99, 7)",
			"BEGIN; UPDATE parts SET region = 'b', fence_token = -7 WHERE id = 1; DELETE FROM parts_a",
			"BEGIN; UPDATE parts_a SET price = 11, fence_token = -7 WHERE id = 1; DELETE FROM parts_a WHERE id = 2",
		} {
			if _, err := l.plain.Exec(query); err == nil {
				t.Errorf("%s: no error", query)
			}
			_, _ = l.plain.Exec("ROLLBACK")
			if got := content(); got != before {
				t.Fatalf("%s: %s", query, got)
			}
		}
		for i, query := range []string{
			"UPDATE parts SET region = 'b', price = 20 WHERE id = 1",
			"UPDATE parts SET region = 'a', price = 30 WHERE id >= 2 RETURNING id",
			"DELETE FROM parts WHERE id = 2",
			"INSERT INTO parts (id, region) VALUES (4, 'b')",
		} {
			if _, err := db.ExecContext(holding(t, 6), query); !errors.Is(err, sqlfence.ErrStale) && i < 3 {
				t.Errorf("%s: %v", query, err)
			}
			if _, err := db.ExecContext(holding(t, 8), query); err != nil && i < 3 {
				t.Errorf("%s: %v", query, err)
			}
		}
		if got, want := content(), "parts_b 1:20@8, parts_a 3:30@8, parts_b 4:10@6"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The token that a statement presents for a DELETE counts for all rows that it deletes from the table itself. It
// doesn't count for a row with a newer token, another table, a statement in a function, or the next statement. The
// token that an UPDATE presents for a row that may move doesn't count for an INSERT.
func TestReachOfAProof(t *testing.T) {
	l := newUnsealed(t, harness.Bases[1])
	l.exec(t, `CREATE TABLE parts (id integer, region text, fence_token bigint NOT NULL DEFAULT 0) PARTITION BY LIST (region);
		CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a'); CREATE TABLE parts_b PARTITION OF parts FOR VALUES IN ('b');
		INSERT INTO parts VALUES (1, 'a', 7), (2, 'a', 7), (3, 'a', 9);
		INSERT INTO books (id, fence_token) VALUES (4, 9);
		CREATE FUNCTION deletes() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN DELETE FROM books WHERE id = 1; RETURN true; END';
		CREATE FUNCTION proves() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN DELETE FROM books WHERE id = 3 AND set_config(''sqlfence.delete_books'', ''8'', true) IS NOT NULL; RETURN true; END'`)
	db := l.Fenced(t, l.dsn, sqlfence.WithTable("books", l.rules...), sqlfence.WithTable("parts", sqlfence.Resource("books"), sqlfence.RowFence("fence_token"), sqlfence.Sealed()))
	if err := schema.Seal(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		t.Helper()
		if err := l.plain.QueryRow("SELECT (SELECT count(*) FROM books) + (SELECT count(*) FROM parts)").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	const (
		proven = "WITH d AS (DELETE FROM books WHERE id = 3 AND set_config('sqlfence.delete_books', '8', true) IS NOT NULL RETURNING id) "
		stays  = "WITH d AS (UPDATE parts SET fence_token = -8 WHERE id = 1 RETURNING id) "
		moves  = "WITH d AS (UPDATE parts SET region = 'b', fence_token = -8 WHERE id = 1 RETURNING id) "
	)
	for query, change := range map[string]int{
		proven + "DELETE FROM books USING d WHERE books.id = 1":                                                               -2,
		proven + "DELETE FROM books USING d WHERE books.id = 4":                                                               0,
		proven + "DELETE FROM parts USING d WHERE parts.id = 1":                                                               0,
		proven + "DELETE FROM books USING d WHERE books.id = 2 AND deletes()":                                                 0,
		"DELETE FROM books WHERE id = 1 AND proves()":                                                                         -2,
		"DELETE FROM books WHERE id = 4 AND proves()":                                                                         0,
		"SELECT proves(); DELETE FROM books WHERE id = 1":                                                                     0,
		proven + "SELECT FROM d WHERE deletes()":                                                                              0,
		proven + "UPDATE books SET price = 99 FROM d":                                                                         0,
		proven + "SELECT FROM d; DELETE FROM books WHERE id = 1":                                                              0,
		stays + "INSERT INTO parts SELECT 9, 'a', 8 FROM d":                                                                   0,
		moves + "INSERT INTO parts SELECT 9, 'b', 8 FROM d":                                                                   0,
		moves + "INSERT INTO parts_b SELECT 9, 'b', 8 FROM d":                                                                 0,
		moves + "DELETE FROM parts USING d WHERE parts.id = 2":                                                                0,
		stays + "DELETE FROM parts USING d WHERE parts.id = 2":                                                                -1,
		stays + "DELETE FROM parts USING d WHERE parts.id = 3":                                                                0,
		stays + "DELETE FROM books USING d WHERE books.id = 1":                                                                0,
		stays + "SELECT FROM d; DELETE FROM parts WHERE id = 2":                                                               0,
		stays + "DELETE FROM parts USING d WHERE parts.id = 3 AND set_config('sqlfence.delete_parts', '9', true) IS NOT NULL": -1,
		"WITH d AS (UPDATE parts SET fence_token = -8 WHERE id <= 2 RETURNING id) DELETE FROM parts USING d WHERE parts.id = 3 AND d.id = 1 AND set_config('sqlfence.delete_parts', '9', true) IS NOT NULL": -1,
		proven + "DELETE FROM parts USING d WHERE parts.id = 3 AND set_config('sqlfence.delete_parts', '9', true) IS NOT NULL":                                                                              -2,
		"INSERT INTO parts_a VALUES (9, 'a', -8), (10, 'a', 8)":                                          0,
		"DELETE FROM parts WHERE id = 2 AND set_config('sqlfence.move_parts', 'to:8', true) IS NOT NULL": 0,
	} {
		tx, err := l.plain.Begin()
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.Exec(query)
		if (err == nil) != (change != 0) || err != nil && !strings.Contains(err.Error(), "sqlfence: ") {
			t.Errorf("%s: %v", query, err)
		}
		if err == nil {
			_ = tx.Commit()
			if got := count(); got != before+change {
				t.Errorf("%s: %d rows of %d", query, got, before)
			}
			l.exec(t, "INSERT INTO books (id, fence_token) VALUES (1, -7), (3, -7) ON CONFLICT (id) DO UPDATE SET price = 10, fence_token = -8; INSERT INTO parts SELECT n, 'a', CASE n WHEN 3 THEN -9 ELSE -8 END FROM generate_series(1, 3) AS n WHERE NOT EXISTS (SELECT FROM parts WHERE id = n)")
		}
		_ = tx.Rollback()
		if got := count(); got != before {
			t.Fatalf("%s: %d rows, want %d", query, got, before)
		}
	}
}

// A child table has its parent's rows, and is sealed with the parent.
func TestInheritance(t *testing.T) {
	l := newUnsealed(t, harness.Bases[1])
	l.exec(t, "CREATE TABLE rare () INHERITS (books); INSERT INTO rare (id, fence_token) VALUES (50, 7)")
	l.seal(t)
	for _, query := range []string{"UPDATE books SET price = 99 WHERE id = 50", "UPDATE rare SET price = 99", "DELETE FROM rare", "DELETE FROM books WHERE id = 50", "TRUNCATE rare", "INSERT INTO rare (id) VALUES (51)"} {
		if _, err := l.plain.Exec(query); harness.SQLState(err) != "FT001" {
			t.Errorf("%s: %v", query, err)
		}
	}
	for _, query := range []string{"UPDATE books SET price = 20 WHERE id >= 3", "DELETE FROM books WHERE id = 50"} {
		if _, err := l.db.ExecContext(holding(t, 7), query); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	l.want(t, "1:10@7 2:10@7 3:20@7")
}

// Seal accepts names that need quotes, and names of the maximum length.
func TestNames(t *testing.T) {
	for _, b := range harness.Chosen(postgres) {
		l := newUnsealed(t, b)
		for i, name := range []string{`"The ""Books"" of 100% %s"`, `"ünïcode $1 {mark} it's"`, `a_name_that_is_as_long_as_postgresql_allows_which_is_63_bytes_aa`} {
			mark := []string{`"ma""rk %"`, `"Mark's"`, "mark"}[i]
			l.exec(t, fmt.Sprintf("CREATE TABLE %s (id integer PRIMARY KEY, %s bigint)", name, mark))
			db := l.Fenced(t, l.dsn, sqlfence.WithTable(name, sqlfence.Resource("books"), sqlfence.RowFence(mark), sqlfence.Sealed(), sqlfence.Ledger()))
			if err := schema.Seal(t.Context(), db); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, query := range []string{"INSERT INTO %s (id) VALUES (1)", "UPDATE %s SET id = 1", "DELETE FROM %s"} {
				query = fmt.Sprintf(query, name)
				if _, err := l.plain.Exec(query); err == nil && query[0] == 'I' || err != nil && harness.SQLState(err) != "FT001" {
					t.Errorf("%s: %v", query, err)
				}
				if _, err := db.ExecContext(holding(t, 7), query); err != nil {
					t.Errorf("%s: %v", query, err)
				}
			}
		}
	}
}

// While a VACUUM runs, Seal and Unseal wait for a lock that makes an autovacuum give way. Writers don't queue behind
// this lock.
func TestSealBehindVacuum(t *testing.T) {
	l := newUnsealed(t, harness.Bases[1])
	unseal := func(ctx context.Context, db *sql.DB) error { return schema.Unseal(ctx, db) }
	for _, change := range []func(context.Context, *sql.DB) error{schema.Seal, unseal} {
		vacuum := harness.Begin(context.Background(), t, l.plain, sql.LevelDefault)
		if _, err := vacuum.Exec("LOCK TABLE books IN SHARE UPDATE EXCLUSIVE MODE"); err != nil {
			t.Fatal(err)
		}
		changed := make(chan error, 1)
		go func() { changed <- change(t.Context(), l.db) }()
		harness.Eventually(t, "it waits", func() bool {
			var waits int
			const query = "SELECT count(*) FROM pg_locks WHERE relation = 'books'::regclass AND NOT granted AND mode = 'ShareUpdateExclusiveLock'"
			if err := l.plain.QueryRow(query).Scan(&waits); err != nil {
				t.Fatal(err)
			}
			return waits > 0
		})
		if _, err := l.db.ExecContext(holding(t, 7), "UPDATE books SET price = price + 1 WHERE id = 1"); err != nil {
			t.Error(err)
		}
		if err := vacuum.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := <-changed; err != nil {
			t.Error(err)
		}
	}
	l.want(t, "1:12@7 2:10@7 3:10@0")
}
