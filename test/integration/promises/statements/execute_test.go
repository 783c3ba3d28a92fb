package statements_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// On PostgreSQL, EXECUTE runs no write that was prepared without its guard, and runs all other prepared statements.
func TestExecuteRunsNoUnguardedWrite(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("the database lists no prepared statements")
		}
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		mixed := s.Fenced(t, s.Source, harness.Books(sqlfence.RowFence("fence_token")),
			sqlfence.WithTable("pens", sqlfence.RowFence("fence_token"), sqlfence.InMode(sqlfence.Observe)))
		observed := s.Fenced(t, s.Source, harness.Books(sqlfence.RowFence("fence_token")), sqlfence.WithMode(sqlfence.Observe))
		for _, tt := range []struct {
			name     string
			db       *sql.DB
			text     string
			bypassed bool
			want     error
		}{
			{"books", s.DB, "EXECUTE price_books", false, sqlfence.ErrUnguardable},
			{"books among others", s.DB, "EXPLAIN ANALYZE EXECUTE price_books", false, sqlfence.ErrUnguardable},
			{"books under Bypass", s.DB, "EXECUTE price_books", true, nil},
			{"pens", s.DB, "EXECUTE price_pens", false, nil},
			{"a read", s.DB, `EXECUTE "0"`, false, nil},
			{"books by odd spelling", s.DB, "EXECUTE odd", false, sqlfence.ErrUnguardable},
			{"books between comments", s.DB, "EXPLAIN ANALYZE EXECUTE close", false, sqlfence.ErrUnguardable},
			{"a setting", s.DB, "EXECUTE setting('session_replication' || '_role', 'replica')", false, sqlfence.ErrUnguardable},
			{"a read of books", s.DB, "EXECUTE read_books(1)", false, nil},
			{"another word", s.DB, "SELECT 1 AS execute_price_books", false, nil},
			{"books beside observed pens", mixed, "EXECUTE price_books", false, sqlfence.ErrUnguardable},
			{"observed pens", mixed, "EXECUTE price_pens", false, nil},
			{"observed books", observed, "EXECUTE price_books", false, nil},
		} {
			t.Run(tt.name, func(t *testing.T) {
				s.Reset(t, 9)
				c, err := tt.db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				bypass := sqlfence.Bypass(t.Context(), "to prepare")
				for _, text := range []string{
					"PREPARE price_books AS UPDATE books SET price = 30 WHERE id = 1", `PREPARE "0" AS SELECT 1`, // lib/pq counts its names from 1
					"PREPARE odd--(\nAS DELETE FROM books WHERE id = 1 --)  AS SELECT 1",
					"PREPARE close/**/AS/**/UPDATE/**/books AS b SET price = 66 WHERE b.id = 1",
					"PREPARE setting (text, text) AS SELECT set_config($1, $2, false)",
					"PREPARE read_books (integer) AS SELECT price FROM books WHERE id = $1",
					"PREPARE price_pens AS UPDATE pens SET price = 30 WHERE id = 1",
				} {
					if _, err := c.ExecContext(bypass, text); err != nil {
						t.Fatal(err)
					}
				}
				defer func() {
					for _, name := range []string{"price_books", "price_pens", "read_books", "odd", "close", "setting", `"0"`} {
						_, _ = c.ExecContext(bypass, "DEALLOCATE "+name)
					}
				}()
				unchanged := s.Unchanged(t)
				ctx := harness.Holding(t, 8)
				if tt.bypassed {
					ctx = bypass
				}
				for name, send := range map[string]func(context.Context, string) error{
					"Exec": func(ctx context.Context, text string) error { _, err := c.ExecContext(ctx, text); return err },
					"Query": func(ctx context.Context, text string) error {
						rows, err := c.QueryContext(ctx, text)
						if err != nil {
							return err
						}
						return rows.Close()
					},
					"Prepare": func(ctx context.Context, text string) error {
						stmt, err := c.PrepareContext(ctx, text)
						if err != nil {
							return err
						}
						defer stmt.Close()
						_, err = stmt.ExecContext(ctx)
						return err
					},
				} {
					err := send(ctx, tt.text)
					if tt.want == nil && err != nil {
						t.Errorf("%s: %v", name, err)
					}
					if tt.want != nil {
						harness.WantOnly(t, err, tt.want)
						unchanged()
					}
				}
			})
		}
	})
}

// A statement that is refused for observed tables only is sent, unless EXECUTE in it runs a write of an enforced table,
// or an argument names a setting on which the guards depend.
func TestWhatIsRefusedForObservedTables(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("the database lists no prepared statements, and has no function that changes settings")
		}
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		mixed := s.Fenced(t, s.Source, harness.Books(sqlfence.RowFence("fence_token")),
			sqlfence.WithTable("pens", sqlfence.RowFence("fence_token"), sqlfence.InMode(sqlfence.Observe)))
		s.Reset(t, 9)
		unchanged := s.Unchanged(t)
		for _, text := range []string{"UPDATE pens SET price = 30; EXECUTE price_books", "TRUNCATE pens; EXECUTE price_books"} {
			c, err := mixed.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			bypass := sqlfence.Bypass(t.Context(), "to prepare")
			if _, err := c.ExecContext(bypass, "PREPARE price_books AS UPDATE books SET price = 30 WHERE id = 1"); err != nil {
				t.Fatal(err)
			}
			_, err = c.ExecContext(harness.Holding(t, 8), text)
			harness.WantOnly(t, err, sqlfence.ErrUnguardable)
			unchanged()
			_, _ = c.ExecContext(bypass, "DEALLOCATE price_books")
			_ = c.Close()
		}
		const query = "WITH x AS (SELECT set_config($1, $2, true) AS a) INSERT INTO pens SELECT 55 FROM x"
		_, err := mixed.ExecContext(harness.Holding(t, 8), query, "session_replication_role", "replica")
		harness.WantOnly(t, err, sqlfence.ErrUnguardable)
		if _, err := mixed.ExecContext(harness.Holding(t, 8), query, "shop.user", "ann"); err != nil {
			t.Error(err)
		}
	})
}

// The word EXECUTE means nothing in transaction control and in comments. sqlfence sends no query of its own before such
// a statement, where the query would fail or change the transaction.
func TestExecuteAsAnyOtherWord(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("the database lists no prepared statements")
		}
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		for _, test := range [][]string{
			{"BEGIN", "SELECT 1/0", "ROLLBACK /* action='execute' */"},
			{"BEGIN", "SAVEPOINT execute", "SELECT 1/0", "ROLLBACK TO SAVEPOINT execute", "SELECT 1", "COMMIT -- execute"},
			{"BEGIN", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE /* execute */", "ROLLBACK"},
			{"BEGIN ISOLATION LEVEL REPEATABLE READ", "LOCK TABLE pens /* execute */", "ROLLBACK"},
		} {
			c, err := s.DB.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, query := range test {
				if _, err := c.ExecContext(t.Context(), query); (err != nil) != (query == "SELECT 1/0") {
					t.Errorf("%q: %s: %v", test, query, err)
				}
			}
			_ = c.Close()
		}
	})
}
