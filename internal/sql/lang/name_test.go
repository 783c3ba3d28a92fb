package lang

import (
	"strings"
	"testing"
)

func TestParseName(t *testing.T) {
	long := strings.Repeat("b", 70)
	for _, tt := range []struct {
		d            Dialect
		in           string
		schema, name string
	}{
		{Postgres, `books`, "", "books"},
		{Postgres, ` Shop.BOOKS `, "shop", "books"},
		{Postgres, `"Books"`, "", "Books"},
		{Postgres, `shop."a""b"`, "shop", `a"b`},
		{Postgres, `db.shop.books`, "shop", "books"},
		{Postgres, `U&"\0062ooks"`, "", "books"},
		{Postgres, `u&"\+000062o\\oks"`, "", `bo\oks`},
		{Postgres, `été`, "", "été"},
		{Postgres, `"ÉTÉ"`, "", "ÉTÉ"},
		{Postgres, `/* the */ books -- table`, "", "books"},
		{Postgres, long, "", long[:63]},
		{Postgres, `"` + long + `"`, "", long[:63]},
		{Postgres, strings.Repeat("é", 40), "", strings.Repeat("é", 31)}, // not half a letter
		{SQLite, `Books`, "", "books"},
		{SQLite, `"Main".[Books]`, "main", "books"},
		{SQLite, "`a``b`", "", "a`b"},
		{SQLite, `'bo''oks'`, "", "bo'oks"},
		{SQLite, `[a"b]`, "", `a"b`},
		{SQLite, `ÉTÉ`, "", "ÉtÉ"}, // folds ASCII only
		{SQLite, long, "", long},
	} {
		schema, name, err := ParseName(tt.d, tt.in)
		if err != nil || schema != tt.schema || name != tt.name {
			t.Errorf("%v, %s: got %q, %q, %v, want %q, %q", tt.d, tt.in, schema, name, err, tt.schema, tt.name)
		}
	}
}

func TestSpellName(t *testing.T) {
	for _, tt := range []struct {
		d            Dialect
		in           string
		schema, name string
	}{
		{MySQL, "Books", "", "Books"},
		{MySQL, " Shop . BOOKS ", "Shop", "BOOKS"},
		{MySQL, "`Shop`.\"Bo\"\"oks\"", "Shop", `Bo"oks`},
		{MySQL, "`a.``B`", "", "a.`B"},
		{MySQL, "Def.Shop.Books", "", ""},
		{MySQL, "Shop./* the */Books -- table", "Shop", "Books"},
		{MySQL, "Books.", "", ""},
		{MySQL, "books", "", "books"},
		{MySQL, "shop . `My Books`", "shop", "My Books"},
		{MySQL, "`a``b`.`c.d`", "a`b", "c.d"},
		{MySQL, `"a""b"`, "", `a"b`},
		{MySQL, "````", "", "`"},
		{Postgres, "Shop.Books", "shop", "books"},
		{SQLite, "Shop.[Books]", "shop", "books"},
	} {
		schema, name, err := SpellName(tt.d, tt.in)
		if schema != tt.schema || name != tt.name || (err == nil) != (tt.name != "") {
			t.Errorf("%v, %s: got %q, %q, %v, want %q, %q", tt.d, tt.in, schema, name, err, tt.schema, tt.name)
		}
	}
}

func TestParseNameRefuses(t *testing.T) {
	for _, tt := range []struct {
		d  Dialect
		in string
	}{
		{Postgres, ""}, {Postgres, " "}, {Postgres, "."}, {Postgres, "a."}, {Postgres, ".a"}, {Postgres, "a..b"},
		{Postgres, "a.b.c.d"}, {Postgres, "a b"}, {Postgres, "a;"}, {Postgres, `""`}, {Postgres, `"a`}, {Postgres, "'books'"},
		{Postgres, "1a"}, {Postgres, "[a]"}, {Postgres, "`a`"}, {Postgres, "a\x00"}, {Postgres, "ÉTÉ"}, {Postgres, `a."b".İ`}, {Postgres, "\xff"}, {Postgres, "$1"},
		{SQLite, ""}, {SQLite, "a-b"}, {SQLite, "[a"}, {SQLite, "x'00'"}, {SQLite, "?"}, {SQLite, "''"}, {SQLite, "books b"},
	} {
		if schema, name, err := ParseName(tt.d, tt.in); err == nil {
			t.Errorf("%v, %q: got %q, %q", tt.d, tt.in, schema, name)
		}
	}
	if _, _, err := ParseName(Postgres, strings.Repeat("x ", 1e5)); err == nil || len(err.Error()) > 300 {
		t.Errorf("the error repeats all of a long name: %.400v", err)
	}
}

func TestParseColumn(t *testing.T) {
	if name, err := ParseColumn(Postgres, `"Fence Token"`); err != nil || name != "Fence Token" {
		t.Errorf("got %q, %v", name, err)
	}
	for _, in := range []string{"books.fence", "", "a,b", "sum(a)"} {
		if name, err := ParseColumn(SQLite, in); err == nil {
			t.Errorf("%q: got %q", in, name)
		}
	}
}
