package read

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
)

// first reads the first statement of a text.
func first(t testing.TB, g *lex.Grammar, sql string) *Text {
	t.Helper()
	x, err := Open(g, sql, lex.EscapesUnknown)
	if err != nil || !x.Next() {
		t.Fatalf("%s: %v", sql, err)
	}
	t.Cleanup(x.Close)
	x.NumberInputs()
	return x
}

func TestRepeatable(t *testing.T) {
	for _, tt := range []struct {
		g        *lex.Grammar
		in, want string // the parts, or ^ and the doubtful token
	}{
		{Postgres, "id = $1 AND lower(a) = 'x' OR b IN (1, 2)", "id = $1 AND lower(a) = 'x' OR b IN (1, 2)"},
		{Postgres, "id = $1 AND f(x) AND b", "id = $1 | b"},
		{Postgres, "f(x) AND \"g\"(x)", ""},
		{Postgres, "shop.lower(a) = 'x' AND b = 1", "b = 1"}, // the application's own
		{Postgres, "id = $1 OR f(x)", ""},
		{Postgres, "id = 1 AND EXISTS (SELECT 1)", "id = 1 AND EXISTS (SELECT 1)"},
		{Postgres, "id IN (SELECT id FROM due) AND f(x) AND id = 1", "id = 1"}, // the subquery may fail
		{Postgres, "id = (SELECT id FROM jobs LIMIT 1)", ""},
		{Postgres, "id IN (SELECT id FROM jobs FOR UPDATE SKIP LOCKED)", ""},
		{Postgres, "id IN (SELECT id FROM jobs OFFSET 1)", ""},
		{Postgres, "id IN (SELECT id FROM jobs FETCH FIRST ROW ONLY)", ""},
		{Postgres, "id IN (SELECT DISTINCT ON (n) id FROM jobs)", ""},
		{Postgres, "id IN (SELECT id FROM jobs TABLESAMPLE BERNOULLI (1))", ""},
		{Postgres, "id IN (SELECT id FROM f(1))", ""},
		{Postgres, "id IN (SELECT id FROM jobs WHERE random() < 1)", ""},
		{MySQL, "id IN (SELECT id FROM jobs LOCK IN SHARE MODE)", ""},
		{MySQL, "id IN (SELECT id FROM jobs WHERE ROWNUM < 2)", ""},
		{MySQL, "id = (SELECT NEXT VALUE FOR s)", ""},
		{MySQL, "id = (SELECT s.nextval)", ""},
		{MySQL, "id = (SELECT @a)", ""},
		{Postgres, "f(x) AND a BETWEEN 1 AND 2 AND b", "a BETWEEN 1 AND 2 | b"},
		{Postgres, "f(x) AND CASE WHEN a AND b THEN c END AND d", "CASE WHEN a AND b THEN c END | d"},
		{Postgres, "f(x) AND a::int = 1 AND $1::int = 2 AND '1'::int = b", "$1::int = 2 | '1'::int = b"},
		{Postgres, "f(x) AND CAST(a AS int) = 1 AND a / b = 2 AND a = -1 AND abs(a) = 1 AND (a) - 1 = 1", "a = -1"},
		{Postgres, "f(x) AND a->>'b' = 'c'", "a->>'b' = 'c'"},
		{Postgres, "f(x) AND", ""},
		{SQLite, "f(x) AND a->>'b' = 'c' AND a / b = 1 AND CAST(a AS int) = 1", "a / b = 1 | CAST(a AS int) = 1"},
		{SQLite, "raise(ABORT, 'x') AND a", "a"},
	} {
		x := first(t, tt.g, "DELETE FROM t WHERE "+tt.in)
		w := x.Writes[0].Where
		if got := x.pieces(x.Repeatable(w.Range)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.in, got, tt.want)
		}
	}
	// If the operand of an AND is unclear, nothing is repeated.
	for _, in := range []string{"f(x) AND a WHEN b", "f(x) AND end", "a AND CASE WHEN end THEN 1 END AND f(x)",
		"a AND f(x) AND CASE end WHEN 1 THEN 2 END"} {
		x := first(t, SQLite, "DELETE FROM t WHERE "+in)
		if parts := x.Repeatable(x.Writes[0].Where.Range); parts != nil {
			t.Errorf("%s: got %v", in, parts)
		}
	}
}

func TestInputs(t *testing.T) {
	for _, tt := range []struct {
		g        *lex.Grammar
		in       string
		want     string
		numbered string
	}{
		{Postgres, "SELECT $3, $1", "{3 false true 0 true}", "SELECT $3, $1"},
		{Postgres, "SELECT 1", "{0 false false 0 true}", "SELECT 1"},
		{SQLite, "SELECT ?, ?", "{2 false false 2 true}", "SELECT ?1, ?2"},
		{SQLite, "SELECT ?, ?5, ?, a", "{6 false true 2 true}", "SELECT ?1, ?5, ?6, a"},
		{SQLite, "SELECT ?, :a, @a, :a, $a", "{4 true false 1 true}", "SELECT ?1, :a, @a, :a, $a"},
	} {
		x := first(t, tt.g, tt.in)
		if got := fmt.Sprint(x.NumberInputs()); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.in, got, tt.want)
		}
		if got, want := x.Source(lex.Range{Lo: 1, Hi: x.Hi}), tt.in[len("SELECT "):]; got != want {
			t.Errorf("%s: %s, want %s", tt.in, got, want)
		}
		var b strings.Builder
		last := int32(0)
		x.EachBare(x.Range, func(at int32, number int) {
			fmt.Fprint(&b, x.Src[last:at], number)
			last = at
		})
		if got := b.String() + x.Src[last:]; got != tt.numbered {
			t.Errorf("%s: %s, want %s", tt.in, got, tt.numbered)
		}
	}
}

// A star stands for any number of columns, also with a name or in brackets.
func TestItemBehindStar(t *testing.T) {
	for list, known := range map[string]bool{
		"a.b, 7":                   true,
		"a * 2, 7":                 true,
		"count(*), 7":              true,
		"*, 7":                     false,
		"a.*, 7":                   false,
		"a.* AS b, 7":              false,
		"a.* b, 7":                 false,
		"(a.*), 7":                 false,
		"(a).*, 7":                 false,
		"((ROW(1, 2)::pair).*), 7": false,
	} {
		x := first(t, Postgres, "SELECT "+list+", c.*")
		columns := lex.Range{Lo: 1, Hi: x.Hi}
		if item, ok := x.Selected(columns, 1); ok != known || known && x.piece(item) != "7" {
			t.Errorf("%s: %q is selected", list, x.piece(item))
		}
		if item := x.Item(columns, 1); item.Empty() == known || known && x.piece(item) != "7" {
			t.Errorf("%s: item %q", list, x.piece(item))
		}
		set := first(t, Postgres, "UPDATE t SET (a, b, c) = ROW("+list+", 8)").Writes[0].Set.Items[0]
		x = first(t, Postgres, "UPDATE t SET (a, b, c) = ROW("+list+", 8)")
		if value, ok := x.Value(set, "b"); ok != known || known && x.piece(value) != "7" {
			t.Errorf("%s: %q is assigned", list, x.piece(value))
		}
	}
}

func TestFindAndItem(t *testing.T) {
	x := first(t, SQLite, "SELECT 1, \"a\", 'Books', f(2, 3)")
	of := func(name string) int { return slices.Index([]string{"books", "a"}, name) }
	if found, at := x.Find(x.Range, of); found != 1 || x.TokenText(at) != `"a"` {
		t.Errorf("got %d, %d", found, at)
	}
	if found, at := x.Find(lex.Range{Lo: 5, Hi: x.Hi}, of); found != 0 || x.TokenText(at) != "'Books'" {
		t.Errorf("got %d, %d", found, at)
	}
	if found, at := x.Find(lex.Range{Lo: 0, Hi: 2}, of); found != -1 || at != -1 {
		t.Errorf("got %d, %d", found, at)
	}
	for n, want := range []string{"1", `"a"`, "'Books'", "f(2, 3)", "", ""} {
		if got := x.piece(x.Item(lex.Range{Lo: 1, Hi: x.Hi}, n)); got != want {
			t.Errorf("item %d: %q", n, got)
		}
	}
	if !x.Word(0, "insert", "select") || x.Word(1, "select") {
		t.Error("Word")
	}
	if x.After(0) != 0 || x.After(1) != 6 || x.Offset(1) != 7 {
		t.Error("After, Offset")
	}
	if _, ok := x.Name(1000); ok {
		t.Error("behind the end is a name")
	}
}

func TestFoldsByLocale(t *testing.T) {
	x := first(t, Postgres, `SELECT a, "É", É`)
	if found, at := x.FoldsByLocale(func(string) int { return 5 }); found != 5 || at != 5 {
		t.Errorf("got %d, %d", found, at)
	}
	if found, at := x.FoldsByLocale(func(string) int { return -1 }); found != -1 || at != -1 {
		t.Errorf("got %d, %d", found, at)
	}
}

func TestRestFollowsTheStatement(t *testing.T) {
	x := first(t, SQLite, "SELECT 1; -- a")
	if got := x.Rest(); got != " -- a" {
		t.Errorf("got %q", got)
	}
	if got := first(t, SQLite, "SELECT 1").Rest(); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestChangesEncoding(t *testing.T) {
	for sql, want := range map[string]string{
		"SET client_encoding = 'GBK'":                  "client_encoding",
		"SET client_encoding TO 'utf-8'":               "",
		"SET NAMES 'GBK'":                              "NAMES",
		"SET LOCAL NAMES 'GBK'":                        "NAMES",
		"SET NAMES UTF8":                               "",
		"SET a = names":                                "",
		"SHOW client_encoding":                         "",
		"RESET client_encoding":                        "",
		`ALTER ROLE a SET "client_encoding" = 'GBK'`:   `"client_encoding"`,
		"SELECT set_config('client_encoding', 'GBK')":  "'client_encoding'",
		"SELECT set_config(E'Client_Encoding', 'GBK')": "E'Client_Encoding'",
		"SELECT names FROM t":                          "",
	} {
		x := first(t, Postgres, sql)
		got := ""
		if at := x.ChangesEncoding(); at >= 0 {
			got = x.TokenText(at)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
	if at := first(t, SQLite, "SELECT client_encoding").ChangesEncoding(); at != -1 {
		t.Errorf("SQLite: %d", at)
	}
}

func TestCode(t *testing.T) {
	for _, tt := range []struct{ sql, code, at string }{
		{"DO $a$ x; $a$", " x; ", "$a$ x; $a$"},
		{"DO 'it''s'", "it's", "'it''s'"},
		{"DO LANGUAGE plpgsql $$x$$", "x", "$$x$$"},
		{"DO $$x$$ LANGUAGE 'plpgsql'", "x", "$$x$$"},
		{"DO $$x$$ LANGUAGE $$plpgsql$$", "x", "$$x$$"},
		{"DO", "", ""},
		{"DO LANGUAGE plperl $$x$$", string(advise.OtherLanguage), "LANGUAGE"},
		{"DO 'a' 'b'", string(advise.OtherLanguage), "'b'"},
		{`DO E'a'`, string(advise.EscapedCode), "E'a'"},
		{`DO 'a\b'`, string(advise.EscapedCode), `'a\b'`},
		{"EXPLAIN ANALYZE DO $$x$$", "x", "$$x$$"},
	} {
		x := first(t, Postgres, tt.sql)
		code, at, reason := x.Code(x.Parts[0])
		if reason != advise.Readable {
			code = string(reason)
		}
		if code != tt.code || x.TokenText(at) != tt.at {
			t.Errorf("%s: got %q at %q", tt.sql, code, x.TokenText(at))
		}
	}
}

func TestExecutes(t *testing.T) {
	for code, want := range map[string]bool{
		"BEGIN UPDATE t SET a = 1; END": false,
		"EXECUTE 'x'":                   true,
		"BEGIN EXECUTE 'x'; END":        true,
		"BEGIN execute'x'; END":         true,
		"-- execute":                    true,
		"CREATE TRIGGER a FOR EACH ROW EXECUTE FUNCTION f()":      false,
		"CREATE TRIGGER a WHEN (x) EXECUTE PROCEDURE f()":         false,
		"GRANT EXECUTE ON FUNCTION f TO a":                        false,
		"BEGIN EXECUTE function; END":                             true,
		"BEGIN EXECUTE on; END":                                   true,
		"GRANT EXECUTE ON FUNCTION f TO a; BEGIN EXECUTE x; END;": true,
		"EXECUTE '": true,
	} {
		if got := Executes(Postgres, code); got != want {
			t.Errorf("%s: %v", code, got)
		}
	}
}

func TestOpenFails(t *testing.T) {
	for sql, offset := range map[string]int{"SELECT 'a": 7, `SELECT '\''`: 8, "SELECT )": 7} {
		if x, err := Open(Postgres, sql, lex.EscapesUnknown); x != nil || err == nil || err.Offset != offset {
			t.Errorf("%s: %v, %v", sql, x, err)
		}
	}
}
