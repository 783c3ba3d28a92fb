package guarantees_test

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A superuser may write to PostgreSQL's catalogue of triggers, functions and columns. Through a fenced database none of
// the server's catalogue tables can be written, and all can be read.
func TestG8WritesOfPostgresDefinitionsAreRefused(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("a statement can write the definitions of PostgreSQL and SQLite; rewrite tests those of SQLite")
		}
		sh := harness.Setting{Base: b}.Shop(t, sqlfence.RowFence("fence_token"))
		rows, err := sh.Plain.QueryContext(t.Context(), `SELECT c.relname, quote_ident(min(a.attname)) FROM pg_class AS c
			JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = 1 WHERE c.relnamespace = 'pg_catalog'::regnamespace
			AND (c.relkind IN ('r', 'p') OR c.relkind = 'v' AND pg_relation_is_updatable(c.oid, true) <> 0) GROUP BY c.relname`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		columns := make(map[string]string)
		for rows.Next() {
			var table, column string
			if err := rows.Scan(&table, &column); err != nil {
				t.Fatal(err)
			}
			columns[table] = column
		}
		if err := rows.Err(); err != nil || len(columns) < 60 {
			t.Fatalf("%d tables, %v", len(columns), err)
		}
		for table, column := range columns {
			for _, name := range []string{table, "pg_catalog." + table, `"` + table + `"`} {
				write, read := "UPDATE "+name+" SET "+column+" = "+column+" WHERE false", "SELECT count(*) FROM "+name
				if _, err := sh.Plain.ExecContext(t.Context(), write); err != nil {
					t.Fatalf("%s: %v: it is to be one that a superuser may write", write, err)
				}
				if _, err := sh.DB.ExecContext(harness.Holding(t, 9), write); !errors.Is(err, sqlfence.ErrUnguardable) {
					t.Errorf("%s: %v, want ErrUnguardable", write, err)
				}
				if _, err := sh.DB.ExecContext(sqlfence.Bypass(t.Context(), "repair"), write); err != nil {
					t.Errorf("%s, under Bypass: %v", write, err)
				}
				if _, err := harness.Returned(sh.DB.QueryContext(t.Context(), read)); err != nil {
					t.Errorf("%s: %v", read, err)
				}
			}
		}
	})
}

// A superuser could switch a trigger off in the catalogue. Through a fenced database this is refused, so no stale write
// succeeds in this way.
func TestG8TriggersCanNotBeSwitchedOffByTheirDefinitions(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("it is PostgreSQL's catalogue")
		}
		sh := harness.Setting{Base: b}.Shop(t, sqlfence.Ledger())
		for _, query := range []string{
			"UPDATE pg_trigger SET tgenabled = 'D' WHERE tgrelid = 'fencing_tokens'::regclass",
			"DO $$BEGIN UPDATE pg_catalog.pg_trigger SET tgenabled = 'D' WHERE tgrelid = 'fencing_tokens'::regclass; END$$",
			"WITH w AS (DELETE FROM pg_trigger WHERE tgrelid = 'fencing_tokens'::regclass RETURNING 1) SELECT * FROM w",
		} {
			if _, err := sh.DB.ExecContext(t.Context(), query); !errors.Is(err, sqlfence.ErrUnguardable) {
				t.Errorf("%s: %v, want ErrUnguardable", query, err)
			}
		}
		var off int
		if err := sh.Plain.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_trigger
			WHERE tgrelid = 'fencing_tokens'::regclass AND tgenabled = 'D'`).Scan(&off); err != nil || off > 0 {
			t.Errorf("%d triggers are off, %v", off, err)
		}
	})
}
