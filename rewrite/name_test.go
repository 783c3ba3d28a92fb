package rewrite

import (
	"slices"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

func TestNew(t *testing.T) {
	books := Table{Name: "books", FenceColumn: "fence_token"}
	for _, tt := range []struct {
		name   string
		d      databases.Dialect
		tables []Table
		ok     bool
	}{
		{"one", databases.Postgres, []Table{books}, true},
		{"none", databases.Postgres, nil, true},
		{"none, of any dialect", databases.MySQL, nil, true},
		{"MySQL", databases.MySQL, []Table{books}, true},
		{"no dialect", 0, []Table{books}, false},
		{"no name", databases.SQLite, []Table{{Ledger: true}}, false},
		{"no rule", databases.SQLite, []Table{{Name: "books"}}, false},
		{"fence is key", databases.SQLite, []Table{{Name: "books", FenceColumn: "id", Key: "id"}}, false},
		{"twice", databases.SQLite, []Table{books, books}, false},
		{"with and without schema", databases.SQLite, []Table{books, {Schema: "shop", Name: "books", Ledger: true}}, false},
		{"in two schemas", databases.SQLite, []Table{{Schema: "a", Name: "books", Ledger: true}, {Schema: "b", Name: "books", Ledger: true}}, true},
	} {
		if _, err := New(tt.d, tt.tables); (err == nil) != tt.ok {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

// TestSchemasOfNamesAreCompared shows that a name without a schema means a table registered with its schema, and that a
// table in another schema is a different table.
func TestSchemasOfNamesAreCompared(t *testing.T) {
	r, err := New(databases.Postgres, []Table{{Schema: "a", Name: "books", FenceColumn: "f"}, {Schema: "b", Name: "books", FenceColumn: "g"}})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]guard.Verdict{
		"UPDATE a.books SET x = 1":    guard.Guard,
		"UPDATE b.books SET x = 1":    guard.Guard,
		`UPDATE db."b".books SET x=1`: guard.Guard,
		"UPDATE c.books SET x = 1":    guard.Pass,
		"DROP TABLE c.books":          guard.Refuse, // every DROP of this name is refused
	} {
		if p := r.Plan(query); p.Verdict != want {
			t.Errorf("%s: got %v, want %v", query, p.Verdict, want)
		}
	}
	if p := r.Plan("UPDATE b.books SET x = 1"); !slices.Equal(p.Tables, []int{1}) {
		t.Errorf("got tables %d, want [1]", p.Tables)
	}
}

// TestTargetsMeanTheirSchema checks that on MySQL a name as `shop:-80@replica` in the schema's place, which Vitess takes
// for the schema shop, means the tables that are registered with that schema. A database may also have such a name.
func TestTargetsMeanTheirSchema(t *testing.T) {
	r, err := New(databases.MySQL, []Table{{Schema: "shop", Name: "books", FenceColumn: "f"}, {Schema: "a@b", Name: "books", FenceColumn: "g"},
		{Schema: "store", Name: "*", Pattern: true, FenceColumn: "f"}, {Schema: "store", Name: "pens", Exempt: true}})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{
		"UPDATE `shop:-80`.books SET x = 1":                      0,
		"UPDATE `Shop@primary`.`books` SET x = 1":                0,
		"UPDATE `shop:80-@replica`.books AS b SET x = 1":         0,
		"DELETE FROM `shop:-80`.books WHERE id = 1":              0,
		"INSERT INTO `shop@primary`.books (x) VALUES (1)":        0,
		"DELETE b FROM `shop:-80`.books b JOIN pens p WHERE 1=1": 0,
		"UPDATE `a@b`.books SET x = 1":                           1,
		"UPDATE `store:-80`.books SET x = 1":                     2,
		"UPDATE `store:-80`.pens SET x = 1":                      -1,
		"UPDATE `shopping:-80`.books SET x = 1":                  -1,
		"UPDATE `:shop`.books SET x = 1":                         -1,
	} {
		p := r.Plan(query)
		if got := p.Verdict == guard.Pass; got != (want < 0) || p.Verdict == guard.Refuse || want >= 0 && want < 2 && !slices.Equal(p.Tables, []int{want}) {
			t.Errorf("%s: %v of the tables %d, want %d: %v", query, p.Verdict, p.Tables, want, p.Refusal)
		}
	}
	r, err = New(databases.Postgres, []Table{{Schema: "shop", Name: "books", FenceColumn: "f"}})
	if err != nil || r.Plan(`UPDATE "shop@b".books SET x = 1`).Verdict != guard.Pass {
		t.Errorf("on PostgreSQL a schema is taken for another one: %v", err)
	}
}

// TestNamesAreFound checks that the first scan of a text finds a name in every spelling.
func TestNamesAreFound(t *testing.T) {
	for _, tt := range []struct {
		d           databases.Dialect
		name, query string
	}{
		{databases.Postgres, "books", `UPDATE BOOKS SET a = 1`},
		{databases.Postgres, "books", `UPDATE U&"\0062ooks" SET a = 1`},
		{databases.Postgres, "Books", `UPDATE "Books" SET a = 1`},
		{databases.Postgres, `a"b`, `UPDATE "a""b" SET a = 1`},
		{databases.Postgres, "été", `UPDATE été SET a = 1`},
		{databases.Postgres, strings.Repeat("b", 63), `UPDATE ` + strings.Repeat("B", 90) + ` SET a = 1`},
		{databases.Postgres, "a b", `UPDATE "a b" SET a = 1`},
		{databases.Postgres, "7", `UPDATE "7" SET a = 1`},
		{databases.SQLite, "books", "UPDATE [BOOKS] SET a = 1"},
		{databases.SQLite, "a`b", "UPDATE `A``B` SET a = 1"},
		{databases.SQLite, "a'b", "UPDATE 'a''b' SET a = 1"},
		{databases.SQLite, `a"b`, `UPDATE "a""b" SET a = 1`},
		{databases.SQLite, `"`, `UPDATE """" SET a = 1`},
		{databases.SQLite, "été", `UPDATE été SET a = 1`},
	} {
		r, err := New(tt.d, []Table{{Name: tt.name, FenceColumn: "f"}})
		if err != nil {
			t.Fatal(err)
		}
		if p := r.Plan(tt.query); p.Verdict != guard.Guard {
			t.Errorf("%v, table %q, %s: got %v %+v", tt.d, tt.name, tt.query, p.Verdict, p.Refusal)
		}
	}
}
