package lang

import (
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/dialect"
)

func TestParseName(t *testing.T) {
	long := strings.Repeat("b", 70)
	for _, tt := range []struct {
		d            dialect.Dialect
		in           string
		schema, name string
	}{
		{dialect.Postgres, `books`, "", "books"},
		{dialect.Postgres, ` Shop.BOOKS `, "shop", "books"},
		{dialect.Postgres, `"Books"`, "", "Books"},
		{dialect.Postgres, `shop."a""b"`, "shop", `a"b`},
		{dialect.Postgres, `db.shop.books`, "shop", "books"},
		{dialect.Postgres, `U&"\0062ooks"`, "", "books"},
		{dialect.Postgres, `u&"\+000062o\\oks"`, "", `bo\oks`},
		{dialect.Postgres, `été`, "", "été"},
		{dialect.Postgres, `"ÉTÉ"`, "", "ÉTÉ"},
		{dialect.Postgres, `/* the */ books -- table`, "", "books"},
		{dialect.Postgres, long, "", long[:63]},
		{dialect.Postgres, `"` + long + `"`, "", long[:63]},
		{dialect.Postgres, strings.Repeat("é", 40), "", strings.Repeat("é", 31)}, // not half a letter
		{dialect.SQLite, `Books`, "", "books"},
		{dialect.SQLite, `"Main".[Books]`, "main", "books"},
		{dialect.SQLite, "`a``b`", "", "a`b"},
		{dialect.SQLite, `'bo''oks'`, "", "bo'oks"},
		{dialect.SQLite, `[a"b]`, "", `a"b`},
		{dialect.SQLite, `ÉTÉ`, "", "ÉtÉ"}, // folds ASCII only
		{dialect.SQLite, long, "", long},
	} {
		schema, name, err := ParseName(tt.d, tt.in)
		if err != nil || schema != tt.schema || name != tt.name {
			t.Errorf("%v, %s: got %q, %q, %v, want %q, %q", tt.d, tt.in, schema, name, err, tt.schema, tt.name)
		}
	}
}

func TestSpellName(t *testing.T) {
	for _, tt := range []struct {
		d            dialect.Dialect
		in           string
		schema, name string
	}{
		{dialect.MySQL, "Books", "", "Books"},
		{dialect.MySQL, " Shop . BOOKS ", "Shop", "BOOKS"},
		{dialect.MySQL, "`Shop`.\"Bo\"\"oks\"", "Shop", `Bo"oks`},
		{dialect.MySQL, "`a.``B`", "", "a.`B"},
		{dialect.MySQL, "Def.Shop.Books", "", ""},
		{dialect.MySQL, "Shop./* the */Books -- table", "Shop", "Books"},
		{dialect.MySQL, "Books.", "", ""},
		{dialect.MySQL, "books", "", "books"},
		{dialect.MySQL, "shop . `My Books`", "shop", "My Books"},
		{dialect.MySQL, "`a``b`.`c.d`", "a`b", "c.d"},
		{dialect.MySQL, `"a""b"`, "", `a"b`},
		{dialect.MySQL, "````", "", "`"},
		{dialect.Postgres, "Shop.Books", "shop", "books"},
		{dialect.SQLite, "Shop.[Books]", "shop", "books"},
	} {
		schema, name, err := SpellName(tt.d, tt.in)
		if schema != tt.schema || name != tt.name || (err == nil) != (tt.name != "") {
			t.Errorf("%v, %s: got %q, %q, %v, want %q, %q", tt.d, tt.in, schema, name, err, tt.schema, tt.name)
		}
	}
}

func TestParseNameRefuses(t *testing.T) {
	for _, tt := range []struct {
		d  dialect.Dialect
		in string
	}{
		{dialect.Postgres, ""}, {dialect.Postgres, " "}, {dialect.Postgres, "."}, {dialect.Postgres, "a."}, {dialect.Postgres, ".a"}, {dialect.Postgres, "a..b"},
		{dialect.Postgres, "a.b.c.d"}, {dialect.Postgres, "a b"}, {dialect.Postgres, "a;"}, {dialect.Postgres, `""`}, {dialect.Postgres, `"a`}, {dialect.Postgres, "'books'"},
		{dialect.Postgres, "1a"}, {dialect.Postgres, "[a]"}, {dialect.Postgres, "`a`"}, {dialect.Postgres, "a\x00"}, {dialect.Postgres, "ÉTÉ"}, {dialect.Postgres, `a."b".İ`}, {dialect.Postgres, "\xff"}, {dialect.Postgres, "$1"},
		{dialect.SQLite, ""}, {dialect.SQLite, "a-b"}, {dialect.SQLite, "[a"}, {dialect.SQLite, "x'00'"}, {dialect.SQLite, "?"}, {dialect.SQLite, "''"}, {dialect.SQLite, "books b"},
	} {
		if schema, name, err := ParseName(tt.d, tt.in); err == nil {
			t.Errorf("%v, %q: got %q, %q", tt.d, tt.in, schema, name)
		}
	}
	if _, _, err := ParseName(dialect.Postgres, strings.Repeat("x ", 1e5)); err == nil || len(err.Error()) > 300 {
		t.Errorf("the error repeats all of a long name: %.400v", err)
	}
}

func TestParseColumn(t *testing.T) {
	if name, err := ParseColumn(dialect.Postgres, `"Fence Token"`); err != nil || name != "Fence Token" {
		t.Errorf("got %q, %v", name, err)
	}
	for _, in := range []string{"books.fence", "", "a,b", "sum(a)"} {
		if name, err := ParseColumn(dialect.SQLite, in); err == nil {
			t.Errorf("%q: got %q", in, name)
		}
	}
}
