package rewrite_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite"
)

// A driver that prepares a text instead of executing it must know whether the text returns rows, and whether it is a
// single statement.
func TestRowsAndAlone(t *testing.T) {
	for _, tt := range []struct {
		query       string
		only        dialect.Dialect // 0 for both
		rows, alone bool
	}{
		{"UPDATE books SET price = 1", 0, false, true},
		{"UPDATE books SET price = 1;", 0, false, true},
		{"UPDATE books SET price = 1; \n", 0, false, true},
		{"UPDATE books SET price = 1 -- the price", 0, false, true},
		{"/* a; b */ UPDATE books SET title = ';'", 0, false, true},
		{"UPDATE books SET price = 1; -- the price", 0, false, false},
		{"UPDATE books SET price = 1; /**/", 0, false, false},
		{"UPDATE books SET price = 1;;", 0, false, false},
		{"UPDATE books SET price = 1 RETURNING id", 0, true, true},
		{"UPDATE books SET price = 1 returning *;", 0, true, true},
		{"INSERT INTO books (id) VALUES (1) ON CONFLICT DO NOTHING RETURNING id", 0, true, true},
		{"DELETE FROM books WHERE id = 1 RETURNING id; --", 0, true, false},
		{"UPDATE books SET title = 'returning'", 0, false, true},
		{"WITH x AS (SELECT 1) UPDATE books SET price = 1", 0, false, true},
		{"WITH x AS (UPDATE books SET price = 1 RETURNING id) SELECT id FROM x", dialect.Postgres, true, true},
		{"EXPLAIN ANALYZE UPDATE books SET price = 1", dialect.Postgres, true, true},
	} {
		for _, d := range []dialect.Dialect{dialect.Postgres, dialect.SQLite} {
			if tt.only != 0 && tt.only != d {
				continue
			}
			r, err := rewrite.New(d, []rewrite.Table{{Name: "books", FenceColumn: "fence_token"}})
			if err != nil {
				t.Fatal(err)
			}
			p := r.Plan(tt.query)
			if p.Verdict != guard.Guard || p.Rows != tt.rows || p.Alone != tt.alone {
				t.Errorf("%v, %s: %v, rows %v, alone %v; want rows %v, alone %v", d, tt.query, p.Verdict, p.Rows, p.Alone, tt.rows, tt.alone)
			}
		}
	}
}

// A plan has each target's name as the database reads it. By this name an execution finds a view in the table's place.
func TestTargetsHaveTheirNames(t *testing.T) {
	r, err := rewrite.New(dialect.Postgres, []rewrite.Table{{Name: "books", FenceColumn: "fence"}})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]guard.Target{
		`UPDATE books SET price = 1`:                                        {Name: "books"},
		`UPDATE "Ten".books AS b SET price = 1`:                             {Schema: "Ten", Name: "books"},
		`DELETE FROM Shop.Books`:                                            {Schema: "shop", Name: "books"},
		`INSERT INTO shop."books" (id) VALUES (1)`:                          {Schema: "shop", Name: "books"},
		`MERGE INTO shop.books USING pens ON true WHEN MATCHED THEN DELETE`: {Schema: "shop", Name: "books"},
	} {
		p := r.Plan(query)
		if len(p.Targets) != 1 || p.Targets[0].Schema != want.Schema || p.Targets[0].Name != want.Name {
			t.Errorf("%s: targets %+v, want %+v", query, p.Targets, want)
		}
	}
}
