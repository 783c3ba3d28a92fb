package rewrite

import (
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// Where the reader is wrong about the end of a part, the second look says so: here
// it ends each part at any place among the tokens instead of the right one.
func TestSecondLookFindsAWrongEnd(t *testing.T) {
	r := benchRewriter(t, databases.Postgres)
	for _, query := range []string{
		"UPDATE books SET price = price + 1, title = 'a' FROM pens p WHERE p.id = books.id AND price > 1 RETURNING price, title",
		"INSERT INTO books (id, price) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET price = 3 WHERE books.id > 1 RETURNING id, price",
		"MERGE INTO books USING pens p ON p.id = books.id WHEN MATCHED AND price > 1 THEN UPDATE SET price = 2 WHEN NOT MATCHED THEN INSERT (id) VALUES (3)",
		"WITH a AS (SELECT 1 AS id) UPDATE books SET price = CASE WHEN a.id = 1 THEN 2 ELSE 3 END FROM a WHERE books.id = a.id",
	} {
		p := r.Plan(query)
		if p.Verdict != guard.Guard {
			t.Fatalf("%v %v: %s", p.Verdict, p.Refusal, query)
		}
		toks, _ := scan(databases.Postgres, query)
		for n := range p.source.edits {
			if p.source.edits[n].op != opAssign {
				continue
			}
			right := p.source.edits[n].at
			for _, tok := range toks[:len(toks)-1] {
				moved := *p
				moved.source.edits = append([]edit(nil), p.source.edits...)
				moved.source.edits[n].at = tok.End
				order(moved.source.edits, query)
				moved.source.plan = &moved
				if ok := moved.renderDefault(); ok != (tok.End == right) {
					t.Errorf("the mark behind byte %d is confirmed: %v\n%s", tok.End, ok, moved.form.sql)
				}
			}
		}
	}
}

// Where the reader is wrong about how many placeholders there are, the second look says so.
func TestSecondLookCountsPlaceholders(t *testing.T) {
	r := benchRewriter(t, databases.SQLite)
	for _, query := range []string{
		"UPDATE books SET price = ?, title = ? WHERE id = ?",
		"INSERT INTO books (id, price) VALUES (?, ?), (?, ?)",
		"DELETE FROM books WHERE id = ?",
		"DELETE FROM books WHERE id IN (?" + strings.Repeat(", ?", manyRepeated) + ")",
	} {
		p := r.Plan(query)
		if p.Verdict != guard.Guard || !p.renderDefault() {
			t.Fatalf("%v %v: %s", p.Verdict, p.Refusal, query)
		}
		for name, wrong := range map[string]func(p *Plan){
			"one more":             func(p *Plan) { p.Inputs++ },
			"one less":             func(p *Plan) { p.Inputs-- },
			"numbers behind":       func(p *Plan) { p.source.counts = false },
			"one more before each": func(p *Plan) { moveInputs(p, 1) },
			"one less before each": func(p *Plan) { moveInputs(p, -1) },
		} {
			other := *p
			other.source.plan, other.form = &other, new(defaultForm)
			other.source.edits = append([]edit(nil), p.source.edits...)
			wrong(&other)
			if other.renderDefault() {
				t.Errorf("%s: confirmed: %s", name, other.form.sql)
			}
		}
	}
}

// moveInputs changes how many placeholders are before each edit.
func moveInputs(p *Plan, by int32) {
	for i := range p.source.edits {
		p.source.edits[i].inputs += by
	}
}

// A table may be called like a word that means something behind the verb.
func TestSecondLookAtTablesNamedLikeKeywords(t *testing.T) {
	named := map[databases.Dialect]string{
		databases.Postgres: "system value overriding indexed source target matched conflict by do set_ merge replace",
		databases.MySQL:    "user system overriding indexed source target matched conflict do merge row end of duplicate",
		databases.SQLite:   "user system value overriding only indexed source target matched conflict by do merge replace key row end of",
	}
	for d, names := range answers(t, named) {
		for _, name := range strings.Fields(names) {
			r, err := New(d, []Table{{Name: name, FenceColumn: "fence", Ledger: true}})
			if err != nil {
				t.Fatal(err)
			}
			queries := []string{
				"UPDATE % SET a = 1", "UPDATE % AS b SET a = 1 WHERE b.a = 2", "UPDATE public.% SET a = 1 RETURNING a",
				"DELETE FROM %", "DELETE FROM % WHERE a = 1 AND %.a = 2",
				"INSERT INTO % (a) VALUES (1)", "INSERT INTO % DEFAULT VALUES", "INSERT INTO public.% AS b (a) SELECT 1",
				"INSERT INTO % (a) VALUES (1), (2) ON CONFLICT (a) DO UPDATE SET a = excluded.a WHERE %.a > 1",
			}
			if d == databases.MySQL {
				queries = []string{
					"UPDATE % SET a = 1", "UPDATE % AS b SET a = 1 WHERE b.a = 2", "UPDATE public.% SET a = 1", "UPDATE LOW_PRIORITY % SET a = 1",
					"DELETE FROM %", "DELETE FROM % WHERE a = 1 AND %.a = 2", "DELETE QUICK FROM %",
					"INSERT INTO % (a) VALUES (1)", "INSERT INTO public.% SET a = 1", "INSERT % (a) VALUES (1), (2) ON DUPLICATE KEY UPDATE a = VALUES(a)",
				}
			}
			for _, query := range queries {
				query = strings.ReplaceAll(query, "%", name)
				if p := r.Plan(query); p.Verdict != guard.Guard {
					t.Errorf("%v: %s: %v %s", d, query, p.Verdict, p.Refusal.Reason)
				}
			}
		}
	}
}
