package read

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

func TestConstant(t *testing.T) {
	for _, tt := range []struct {
		g    *lex.Grammar
		in   string
		want string
	}{
		{Postgres, "$2", "{ 2 }"}, {Postgres, "1", "{ 0 1}"}, {Postgres, "0", "{ 0 0}"}, {Postgres, "'it''s'", "{ 0 it's}"},
		{Postgres, "$1::bigint", "{ 1 }"}, {Postgres, "'a'::text::pg_catalog.varchar", "{ 0 a}"}, {Postgres, "CAST($1 AS character varying)", "{ 1 }"},
		{Postgres, "uuid 'a'", "{ 0 a}"}, {Postgres, "pg_catalog.int8 '7'", "{ 0 7}"}, {Postgres, "CAST('a'::text AS uuid)", "{ 0 a}"},
		{Postgres, "01", ""}, {Postgres, "1.5", ""}, {Postgres, "-1", ""}, {Postgres, "1 + 1", ""}, {Postgres, "E'a'", ""}, {Postgres, `'a\b'`, ""},
		{Postgres, "$$a$$", ""}, {Postgres, "a", ""}, {Postgres, "$1::varchar(3)", ""}, {Postgres, "$1::int[]", ""}, {Postgres, "$1::text array", ""},
		{Postgres, "$1::numeric", ""}, {Postgres, "CAST($1 AS numeric)", ""}, {Postgres, "CAST($1)", ""}, {Postgres, "CAST(a AS text)", ""}, {Postgres, "CAST($1 AS text) + 1", ""}, {Postgres, "text $1", ""},
		{SQLite, "?", "{ 1 }"}, {SQLite, "?7", "{ 7 }"}, {SQLite, ":id", "{id 1 }"}, {SQLite, "@id", "{id 1 }"}, {SQLite, "$id", "{id 0 }"},
		{SQLite, "$1", "{1 1 }"}, {SQLite, "$2", ""}, {SQLite, "CAST(? AS TEXT)", "{ 1 }"}, {SQLite, "CAST(? AS INTEGER)", ""}, {SQLite, "'a'::text", "error"},
		{SQLite, "text 'a'", ""}, {SQLite, "x'00'", ""}, {SQLite, `'a\b'`, ""},
	} {
		x, err := Open(tt.g, "UPDATE t SET id = "+tt.in, lex.EscapesUnknown)
		if err != nil {
			if tt.want != "error" {
				t.Errorf("%s: %v", tt.in, err)
			}
			continue
		}
		x.Next()
		x.NumberInputs()
		got := ""
		if c, ok := x.Constant(x.PlainValue(x.Writes[0].Set.Items[0])); ok {
			got = fmt.Sprintf("{%s %d %s}", c.Name, c.Ordinal, c.Text)
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.in, got, tt.want)
		}
		x.Close()
	}
	x := first(t, SQLite, "SELECT 1")
	if _, ok := x.Constant(lex.Range{Lo: 1, Hi: 1}); ok {
		t.Error("nothing is a constant")
	}
}

// assignedValues are items of a SET list, and what they assign to id: as column =
// value, in any form, - for what can't be seen, and as the column of a table.
var assignedValues = []struct {
	g         *lex.Grammar
	set       string
	plain     string
	want      string
	qualified string
}{
	{Postgres, "id = a + 1", "a + 1", "a + 1", ""},
	{Postgres, "id = EXCLUDED.\"id\"", "EXCLUDED.\"id\"", "EXCLUDED.\"id\"", "excluded.id"},
	{Postgres, "id = excluded.a", "excluded.a", "excluded.a", "excluded.a"},
	{Postgres, "id = other.id", "other.id", "other.id", "other.id"},
	{Postgres, "id = 1 * 2", "1 * 2", "1 * 2", ""},
	{Postgres, "(a, id) = (1, f(2, 3))", "", "f(2, 3)", ""},
	{Postgres, "(id, a) = ROW(1, 2)", "", "1", ""},
	{Postgres, "(id) = ROW(1)", "", "1", ""},
	{Postgres, "(id) = (1)", "", "-", ""},
	{Postgres, "(id, a) = (SELECT 1, 2)", "", "-", ""},
	{Postgres, "(id, a) = (1, b.*)", "", "-", ""},
	{Postgres, "(id, a) = (1)", "", "-", ""},
	{Postgres, "(id, a) = (, 1)", "", "-", ""},
	{Postgres, "(id, a) = f(1, 2)", "", "-", ""},
	{Postgres, "(id, id) = (1, 2)", "", "-", ""},
	{Postgres, "(id[1], a) = (1, 2)", "", "-", ""},
	{Postgres, "(id, a) 1", "", "-", ""},
	{Postgres, "id[1] = 1", "", "-", ""},
	{Postgres, "id.a = 1", "", "-", ""},
	{Postgres, "id =", "", "-", ""},
	{Postgres, "id", "", "-", ""},
	{SQLite, "id == 1", "= 1", "1", ""},
	{SQLite, "id = = 1", "= 1", "= 1", ""},
	{SQLite, "(id) = 1", "", "1", ""},
	{SQLite, "(id) = (1)", "", "(1)", ""},
	{SQLite, "(`ID`, a) = (1, 2)", "", "1", ""},
	{SQLite, "(id, a) = row(1, 2)", "", "-", ""},
}

func TestValue(t *testing.T) {
	for _, tt := range assignedValues {
		x := first(t, tt.g, "UPDATE t SET "+tt.set)
		a := x.Writes[0].Set.Items[0]
		if !x.Assigns(a, "id") || x.Assigns(a, "no") {
			t.Errorf("%s: assigns something else", tt.set)
		}
		plain := x.PlainValue(a)
		if got := x.piece(plain); got != tt.plain {
			t.Errorf("%s: plain %q, want %q", tt.set, got, tt.plain)
		}
		if of, column, _ := x.Qualified(plain); strings.Trim(of+"."+column, ".") != tt.qualified {
			t.Errorf("%s: column %q of %q, want %q", tt.set, column, of, tt.qualified)
		}
		got := "-"
		if value, ok := x.Value(a, "id"); ok {
			got = x.piece(value)
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.set, got, tt.want)
		}
	}
	x := first(t, Postgres, "UPDATE t SET (a, b) = (1, 2), (a[id], c) = (1, 2)")
	for _, a := range x.Writes[0].Set.Items {
		if _, ok := x.Value(a, "id"); ok || x.Assigns(a, "id") {
			t.Errorf("%s assigns id", x.piece(a.Range))
		}
	}
}
