package rewrite

import (
	"slices"
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

func TestNew(t *testing.T) {
	books := Table{Name: "books", FenceColumn: "fence_token"}
	for _, tt := range []struct {
		name   string
		d      Dialect
		tables []Table
		ok     bool
	}{
		{"one", Postgres, []Table{books}, true},
		{"none", Postgres, nil, true},
		{"none, of any dialect", MySQL, nil, true},
		{"MySQL", MySQL, []Table{books}, true},
		{"no dialect", 0, []Table{books}, false},
		{"no name", SQLite, []Table{{Ledger: true}}, false},
		{"no rule", SQLite, []Table{{Name: "books"}}, false},
		{"fence is key", SQLite, []Table{{Name: "books", FenceColumn: "id", Key: "id"}}, false},
		{"twice", SQLite, []Table{books, books}, false},
		{"with and without schema", SQLite, []Table{books, {Schema: "shop", Name: "books", Ledger: true}}, false},
		{"in two schemas", SQLite, []Table{{Schema: "a", Name: "books", Ledger: true}, {Schema: "b", Name: "books", Ledger: true}}, true},
	} {
		if _, err := New(tt.d, tt.tables); (err == nil) != tt.ok {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

// TestSchemas shows that a table registered with its schema is meant by its name
// alone too, and that another schema's is another table.
func TestSchemas(t *testing.T) {
	r, err := New(Postgres, []Table{{Schema: "a", Name: "books", FenceColumn: "f"}, {Schema: "b", Name: "books", FenceColumn: "g"}})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]Verdict{
		"UPDATE a.books SET x = 1":    Guard,
		"UPDATE b.books SET x = 1":    Guard,
		`UPDATE db."b".books SET x=1`: Guard,
		"UPDATE c.books SET x = 1":    Pass,
		"DROP TABLE c.books":          Refuse, // rather one too many
	} {
		if p := r.Plan(query); p.Verdict != want {
			t.Errorf("%s: got %v, want %v", query, p.Verdict, want)
		}
	}
	if p := r.Plan("UPDATE b.books SET x = 1"); !slices.Equal(p.Tables, []int{1}) {
		t.Errorf("got tables %d, want [1]", p.Tables)
	}
}

// TestNamesAreFound shows that the first scan of a text misses no way to write a name.
func TestNamesAreFound(t *testing.T) {
	for _, tt := range []struct {
		d           Dialect
		name, query string
	}{
		{Postgres, "books", `UPDATE BOOKS SET a = 1`},
		{Postgres, "books", `UPDATE U&"\0062ooks" SET a = 1`},
		{Postgres, "Books", `UPDATE "Books" SET a = 1`},
		{Postgres, `a"b`, `UPDATE "a""b" SET a = 1`},
		{Postgres, "été", `UPDATE été SET a = 1`},
		{Postgres, strings.Repeat("b", 63), `UPDATE ` + strings.Repeat("B", 90) + ` SET a = 1`},
		{Postgres, "a b", `UPDATE "a b" SET a = 1`},
		{Postgres, "7", `UPDATE "7" SET a = 1`},
		{SQLite, "books", "UPDATE [BOOKS] SET a = 1"},
		{SQLite, "a`b", "UPDATE `A``B` SET a = 1"},
		{SQLite, "a'b", "UPDATE 'a''b' SET a = 1"},
		{SQLite, `a"b`, `UPDATE "a""b" SET a = 1`},
		{SQLite, `"`, `UPDATE """" SET a = 1`},
		{SQLite, "été", `UPDATE été SET a = 1`},
	} {
		r, err := New(tt.d, []Table{{Name: tt.name, FenceColumn: "f"}})
		if err != nil {
			t.Fatal(err)
		}
		if p := r.Plan(tt.query); p.Verdict != Guard {
			t.Errorf("%v, table %q, %s: got %v %+v", tt.d, tt.name, tt.query, p.Verdict, p.Refusal)
		}
	}
}
