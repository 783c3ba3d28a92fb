package statements_test

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A write that a statement's text doesn't show must not happen.

// hiddenCode are statements that would write to the books without naming them.
var hiddenCode = []string{
	"DO $x$ BEGIN EXECUTE 'UPDATE ' || quote_ident('bo' || 'oks') || ' SET price = 0'; END $x$",
	"DO $$ DECLARE r record; BEGIN FOR r IN ExEcUtE 'UPDATE bo' || 'oks SET price = 0 RETURNING 1' LOOP END LOOP; END $$",
	"DO 'BEGIN EXECUTE ''UPDATE bo'' || ''oks SET price = 0''; END'",
	"DO LANGUAGE plpgsql $$ BEGIN EXECUTE 'UPDATE bo' || 'oks SET price = 0'; END $$",
	"DO LANGUAGE 'plpgsql' $$ BEGIN EXECUTE 'UPDATE bo' || 'oks SET price = 0'; END $$",
	"DO $$ BEGIN EXECUTE 'UPDATE bo' || 'oks SET price = 0'; END $$ LANGUAGE plpgsql",
	"DO $$ DECLARE function text := 'UPDATE bo' || 'oks SET price = 0'; BEGIN -- FOR EACH ROW\n EXECUTE function; END $$",
	"DO $$ DECLARE function text := 'UPDATE bo' || 'oks SET price = 0'; BEGIN <<row>> BEGIN EXECUTE function; END; END $$",
	"DO $$ DECLARE function text := 'UPDATE bo' || 'oks SET price = 0 RETURNING 1'; row int; BEGIN FOR row IN EXECUTE function LOOP END LOOP; END $$",
	`DO E'BEGIN UPDATE bo\157ks SET price = 0; END'`,
	`DO E'BEGIN UPDATE b\u006foks SET price = 0; END'`,
	`DO U&'BEGIN UPDATE bo\006fks SET price = 0; END'`,
	`DO U&'BEGIN UPDATE bo!006fks SET price = 0; END' UESCAPE '!'`,
	"DO 'BEGIN UPDATE bo'\n'oks SET price = 0; END'",
	`DO $$ BEGIN UPDATE U&"bo\006fks" SET price = 0; END $$`,
	`DO $$ BEGIN UPDATE u&"bo!006fks" UESCAPE '!' SET price = 0; END $$`,
	"DO $$ BEGIN UPDATE books SET price = 0; END $$",
	"SELECT 1; DO $$ BEGIN EXECUTE 'UPDATE bo' || 'oks SET price = 0'; END $$",
	"/* a */ -- b\n DO $$ BEGIN EXECUTE 'UPDATE bo' || 'oks SET price = 0'; END $$",
	"SELECT 1; /* a /* b */ */ DO $$ BEGIN EXECUTE 'UPDATE bo' || 'oks SET price = 0'; END $$",
}

func TestHiddenCodeIsRefused(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("SQLite runs no code")
		}
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		for _, code := range hiddenCode {
			s.Reset(t, 9)
			if _, err := s.Plain.ExecContext(t.Context(), code); err != nil || s.State(t, true) != "1:0@9 2:0@9 3:0@9" {
				t.Fatalf("without sqlfence %s does nothing: %v, %s", code, err, s.State(t, true))
			}
			s.Reset(t, 9)
			unchanged := s.Unchanged(t)
			for name, run := range harness.Ways {
				if err := run(harness.Holding(t, 8), s.DB, code); !errors.Is(err, sqlfence.ErrUnguardable) {
					t.Errorf("%s by %s: %v", code, name, err)
				}
			}
			unchanged()
			if _, err := s.DB.ExecContext(sqlfence.Bypass(t.Context(), "a test"), code); err != nil {
				t.Errorf("under Bypass: %v", err)
			}
		}
		s.Reset(t, 9)
		for _, code := range []string{"DO $$ BEGIN UPDATE pens SET price = 3; END $$", "SELECT 1; DO $$ BEGIN PERFORM 1; END $$",
			"DO $$ BEGIN CREATE TRIGGER pens BEFORE UPDATE ON pens FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger(); END $$"} {
			if _, err := s.DB.ExecContext(t.Context(), code); err != nil {
				t.Errorf("%s: %v", code, err)
			}
		}
		bare := b.Fenced(t, s.Source)
		if _, err := bare.ExecContext(t.Context(), hiddenCode[0]); err != nil {
			t.Errorf("no table is registered: %v", err)
		}
	})
}

// PostgreSQL's functions that execute a given text permit only reads in the text.
func TestTextRunByFunctionsOnlyReads(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("SQLite's functions run no text")
		}
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		s.Reset(t, 9)
		unchanged := s.Unchanged(t)
		for _, query := range []string{
			"SELECT query_to_xml('UPDATE bo' || 'oks SET price = 0 RETURNING id', true, true, '')",
			"SELECT query_to_xmlschema('UPDATE bo' || 'oks SET price = 0 RETURNING id', true, true, '')",
			"SELECT query_to_xml_and_xmlschema('WITH w AS (UPDATE bo' || 'oks SET price = 0 RETURNING id) SELECT * FROM w', true, true, '')",
			"SELECT * FROM ts_stat('WITH w AS (UPDATE bo' || 'oks SET price = 0 RETURNING id) SELECT to_tsvector(''a'') FROM w')",
			"SELECT ts_rewrite('a'::tsquery, 'WITH w AS (UPDATE bo' || 'oks SET price = 0 RETURNING id) SELECT ''a''::tsquery, ''b''::tsquery FROM w')",
			"SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, ''b''::tsquery; UPDATE bo' || 'oks SET price = 0')",
		} {
			if _, err := harness.Returned(s.DB.QueryContext(t.Context(), query)); err == nil {
				t.Errorf("%s: no error", query)
			}
			unchanged()
		}
	})
}

// SQLite's own table of the schema could be written after a pragma. sqlfence refuses this.
func TestSchemaIsNotWritten(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("it is SQLite's")
		}
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		c, err := s.DB.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.ExecContext(t.Context(), "PRAGMA writable_schema = ON"); err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{
			"UPDATE sqlite_schema SET sql = replace(sql, 'a', 'b') WHERE name = 'bo' || 'oks'",
			"DELETE FROM main . [sqlite_master] WHERE name = 'bo' || 'oks'",
		} {
			if _, err := c.ExecContext(t.Context(), query); !errors.Is(err, sqlfence.ErrUnguardable) {
				t.Errorf("%s: %v", query, err)
			}
		}
		query := "UPDATE sqlite_schema SET sql = sql WHERE name = 'bo' || 'oks'"
		if _, err := c.ExecContext(sqlfence.Bypass(t.Context(), "test"), query); err != nil {
			t.Errorf("under Bypass: %v", err)
		}
	})
}
