package statements_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The statements of this file are near a limit of the databases.

// A statement has as many arguments as the database accepts. So the guard's values are written into the text.
func TestMostArguments(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Name == "modernc" {
			t.Skip("its own work grows with the square of the arguments")
		}
		most := map[sqlfence.Dialect]int{sqlfence.Postgres: 65535, sqlfence.SQLite: 32766, sqlfence.MySQL: 65535}[b.Dialect]
		for _, fence := range harness.Fences {
			s := harness.NewShop(t, b, fence.Rule)
			var list strings.Builder
			args := []any{30}
			for i := 2; i <= most; i++ {
				fmt.Fprintf(&list, ", $%d", i)
				args = append(args, i)
			}
			query := "UPDATE books SET price = $1 WHERE id IN (" + list.String()[2:] + ") RETURNING id"
			if b.Dialect == sqlfence.SQLite { // SQLite searches for each placeholder among all
				query = fmt.Sprintf("UPDATE books SET price = ?1 WHERE id IN (2, 3, ?%d) RETURNING id", most)
			}
			for _, name := range []string{"query", "prepared exec"} {
				run := harness.Ways[name]
				s.Reset(t, 9)
				s.Raise(t, "books", 10)
				if err := run(harness.Holding(t, 10), s.DB, query, args...); err != nil {
					t.Errorf("%s by %s: %v", fence.Name, name, err)
				}
				before := s.State(t, true)
				if !strings.HasPrefix(before, "1:10@9 2:30@") {
					t.Errorf("%s by %s: books are %s", fence.Name, name, before)
				}
				if err := run(harness.Holding(t, 8), s.DB, query, args...); !errors.Is(err, sqlfence.ErrStale) {
					t.Errorf("%s by %s with an older token: %v", fence.Name, name, err)
				}
				if after := s.State(t, true); after != before {
					t.Errorf("%s by %s with an older token: books were %s, are %s", fence.Name, name, before, after)
				}
			}
		}
	})
}

// A DELETE has as many placeholders without numbers as SQLite accepts. So the guard can't repeat the condition with its
// placeholders, and it would take too long to find the number of each.
func TestMostBarePlaceholders(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite || b.Name == "modernc" {
			t.Skip("for SQLite; modernc's own work grows with the square of the arguments")
		}
		const most = 32766
		var args []any
		for i := range most {
			args = append(args, i+2)
		}
		query := "DELETE FROM books WHERE id IN (?" + strings.Repeat(", ?", most-1) + ")"
		for _, fence := range harness.Fences {
			s := harness.NewShop(t, b, fence.Rule)
			s.Reset(t, 9)
			s.Raise(t, "books", 10)
			unchanged := s.Unchanged(t)
			if _, err := s.DB.ExecContext(harness.Holding(t, 8), query, args...); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("%s with an older token: %v", fence.Name, err)
			}
			unchanged()
			if _, err := s.DB.ExecContext(harness.Holding(t, 10), query, args...); err != nil {
				t.Errorf("%s: %v", fence.Name, err)
			}
			if left := s.State(t, true); strings.Contains(left, " ") {
				t.Errorf("%s: books are %s", fence.Name, left)
			}
		}
	})
}

// PostgreSQL refuses a MERGE with an unreachable arm, and so does sqlfence.
func TestArmThatIsNeverReached(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("SQLite has no MERGE")
		}
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		s.Reset(t, 9)
		unchanged := s.Unchanged(t)
		for _, arms := range []string{
			"WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET price = 1",
			"WHEN MATCHED THEN UPDATE SET price = 1 WHEN NOT MATCHED THEN DO NOTHING WHEN MATCHED AND true THEN DELETE",
			"WHEN NOT MATCHED THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (id) VALUES (7)",
		} {
			query := "MERGE INTO books USING (SELECT 1) AS s (id) ON books.id = s.id " + arms
			if _, err := s.Plain.ExecContext(t.Context(), query); err == nil {
				t.Fatalf("without sqlfence %s is no error", arms)
			}
			for name, run := range harness.Ways {
				if err := run(harness.Holding(t, 9), s.DB, query); !errors.Is(err, sqlfence.ErrUnguardable) {
					t.Errorf("%s by %s: %v", arms, name, err)
				}
			}
		}
		unchanged()
	})
}

// A stale row undoes the whole UPDATE OR FAIL. A row that violates a constraint stops the statement at this row, as
// without sqlfence.
func TestUpdateOrFail(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("it is SQLite's")
		}
		for _, table := range []string{
			"CREATE TABLE books (id integer PRIMARY KEY, isbn varchar(20) UNIQUE, price integer DEFAULT 10, fence_token bigint)",
			"CREATE TABLE books (id integer PRIMARY KEY, isbn varchar(20), price integer DEFAULT 10, fence_token bigint)",
			"CREATE TABLE books (id integer PRIMARY KEY, isbn varchar(20) UNIQUE, price integer DEFAULT 10, fence_token bigint) WITHOUT ROWID",
		} {
			for _, rules := range [][]sqlfence.Rule{{sqlfence.RowFence("fence_token")}, {sqlfence.RowFence("fence_token"), sqlfence.Ledger()}} {
				s := harness.NewShop(t, b, rules...)
				s.Exec(t, "DROP TABLE books")
				s.Exec(t, table)
				for name, run := range harness.Ways {
					s.Reset(t, 9)
					s.Exec(t, "UPDATE books SET fence_token = 11 WHERE id = 3")
					s.Raise(t, "books", 10)
					unchanged := s.Unchanged(t)
					const all = "UPDATE OR FAIL books SET price = price + 1 RETURNING id"
					if err := run(harness.Holding(t, 10), s.DB, all); !errors.Is(err, sqlfence.ErrStale) {
						t.Errorf("%s: %v", name, err)
					}
					unchanged()

					tx, err := s.DB.BeginTx(t.Context(), nil)
					if err != nil {
						t.Fatal(err)
					}
					if err := run(harness.Holding(t, 10), tx, "UPDATE books SET price = 20 WHERE id = 1"); err != nil {
						t.Error(err)
					}
					if err := run(harness.Holding(t, 10), tx, all); !errors.Is(err, sqlfence.ErrStale) {
						t.Errorf("%s in a transaction: %v", name, err)
					}
					if err := tx.Commit(); err != nil {
						t.Error(err)
					}
					if got := s.State(t, true); got != "1:20@10 2:10@9 3:10@11" {
						t.Errorf("%s in a transaction: books are %s", name, got)
					}
				}
				if !strings.Contains(table, "UNIQUE") {
					continue
				}
				s.Reset(t, 9)
				s.Raise(t, "books", 10)
				const collides = "UPDATE OR FAIL books SET isbn = CASE id WHEN 1 THEN 'i7' ELSE 'i3' END, price = 20 WHERE id < 3"
				if _, err := s.DB.ExecContext(harness.Holding(t, 10), collides); err == nil || errors.Is(err, sqlfence.ErrStale) {
					t.Errorf("err = %v", err)
				}
				if got := s.State(t, true); got != "1:20@10 2:10@9 3:10@9" {
					t.Errorf("books are %s", got)
				}
			}
		}
	})
}

// After an operator that ends in an asterisk stands a CASE. The guarded DELETE reaches the same rows as the bare one.
func TestCaseBehindAsterisk(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("SQLite has no such operator")
		}
		const query = "DELETE FROM books WHERE isbn !~* CASE WHEN substr(isbn, 1) = 'x' AND price = 77 AND substr(isbn, 1) <> '' THEN 'i' ELSE 'i3' END"
		for _, fence := range harness.Fences {
			s := harness.NewShop(t, b, fence.Rule)
			s.Reset(t, 9)
			for name, run := range harness.Ways {
				tx, err := s.DB.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := run(harness.Holding(t, 9), tx, query); err != nil {
					t.Errorf("%s by %s: %v", fence.Name, name, err)
				}
				var left string
				if err := tx.QueryRowContext(t.Context(), "SELECT string_agg(isbn, ' ') FROM books").Scan(&left); err != nil || left != "i3" {
					t.Errorf("%s by %s: left are %q, %v; want i3", fence.Name, name, left, err)
				}
				if err := tx.Rollback(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// SQLite accepts an unclosed comment, which ends with the text.
func TestOpenComment(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("PostgreSQL refuses it")
		}
		for _, fence := range harness.Fences {
			s := harness.NewShop(t, b, fence.Rule)
			for _, query := range []string{
				"UPDATE books SET price = 30 WHERE id = 1 /* the first; DELETE FROM books",
				"UPDATE books SET price = 30 WHERE id = 1 /*/ the first",
				"INSERT INTO books (id, isbn) VALUES (1, 'i1') ON CONFLICT (id) DO UPDATE SET price = 30 /* the first -- one *",
				"DELETE FROM books WHERE id = 1 /* the first ' ",
			} {
				for name, run := range harness.Ways {
					s.Reset(t, 9)
					unchanged := s.Unchanged(t)
					if err := run(harness.Holding(t, 8), s.DB, query); !errors.Is(err, sqlfence.ErrStale) {
						t.Errorf("%s: %s by %s: %v", fence.Name, query, name, err)
					}
					unchanged()
					if err := run(harness.Holding(t, 9), s.DB, query); err != nil {
						t.Errorf("%s: %s by %s: %v", fence.Name, query, name, err)
					}
					if got := s.State(t, false); got != "1:30 2:10 3:10" && got != "2:10 3:10" {
						t.Errorf("%s: %s by %s: books are %s", fence.Name, query, name, got)
					}
				}
			}
		}
	})
}

// A table may have a column named rowid, which keeps its default.
func TestDefaultOfRowidColumn(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("it is a column like others in PostgreSQL")
		}
		s := harness.NewShop(t, b, sqlfence.Ledger())
		s.Exec(t, "DROP TABLE books")
		s.Exec(t, "CREATE TABLE books (id integer PRIMARY KEY, rowid integer DEFAULT 5, oid integer DEFAULT 6)")
		s.Raise(t, "books", 9)
		if _, err := s.DB.ExecContext(harness.Holding(t, 9), "INSERT INTO books DEFAULT VALUES"); err != nil {
			t.Error(err)
		}
		var id, rowid, oid int
		if err := s.Plain.QueryRowContext(t.Context(), "SELECT id, rowid, oid FROM books").Scan(&id, &rowid, &oid); err != nil || id != 1 || rowid != 5 || oid != 6 {
			t.Errorf("the row is %d, %d, %d: %v", id, rowid, oid, err)
		}
	})
}

// A condition's first part excludes rows on which the second part would fail. The guarded statement doesn't fail on
// them, as with the base driver.
func TestConditionThatKeepsRowsFromAnother(t *testing.T) {
	conditions := map[sqlfence.Dialect][]string{
		sqlfence.Postgres: {
			"translate(isbn, '0123456789', '') = '' AND isbn::int > 3",
			"translate(isbn, '0123456789', '') = '' AND CAST(isbn AS int) > 3",
			"strpos(isbn, '9') = 1 AND 1 / (id - id) = 1",
			"left(isbn, 1) = '{' AND (isbn::json)->>'a' = '1'",
		},
		sqlfence.SQLite: {
			"json_valid(isbn) AND isbn ->> 'a' = 1 AND EXISTS (SELECT 1 FROM pens WHERE pens.id = books.id)",
			"price = trim('11') AND isbn->'a' = '1' AND (SELECT true)",
			"substr(isbn, 1, 1) = '{' AND id > 1 AND isbn -> 'a' = '1' AND id IN (SELECT id FROM pens WHERE id < 9)",
			"hex(isbn) = '' AND abs(-9223372036854775807 - id) > 1 AND (SELECT true)",
		},
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, fence := range harness.Fences {
			s := harness.NewShop(t, b, fence.Rule)
			for _, condition := range conditions[b.Dialect] {
				query := "DELETE FROM books WHERE " + condition
				s.Reset(t, 9)
				if _, err := s.Plain.ExecContext(t.Context(), query); err != nil {
					t.Fatalf("%s: %v", query, err)
				}
				want := s.State(t, true)
				s.Reset(t, 9)
				if _, err := s.DB.ExecContext(harness.Holding(t, 9), query); err != nil {
					t.Errorf("%s: %s: %v", fence.Name, query, err)
				}
				if got := s.State(t, true); got != want {
					t.Errorf("%s: %s left %s, want %s", fence.Name, query, got, want)
				}
			}
		}
	})
}
