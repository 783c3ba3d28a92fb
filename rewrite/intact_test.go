package rewrite

import (
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// opened returns a parsed statement with the numbers of its placeholders.
func opened(t *testing.T, d databases.Dialect, query string) *read.Text {
	t.Helper()
	text, err := read.Open(says(d).Grammar, query, lex.EscapesUnknown)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(text.Close)
	text.NumberInputs()
	return text
}

// moved reports whether a plan with changed edits is rendered.
func moved(p *Plan, text *read.Text, change func(edits []render.Fragment)) bool {
	other := *p
	other.Source.Plan, other.Form = &other, new(render.Form)
	other.Source.Fragments = append([]render.Fragment(nil), p.Source.Fragments...)
	change(other.Source.Fragments)
	render.Order(other.Source.Fragments, text.Src)
	return other.RenderParameterised(text)
}

// If the reader were wrong about the end of a SET list, the plan would not be rendered. The test moves the guard's
// assignment to every wrong place among the tokens.
func TestMarkBelongsIntoSet(t *testing.T) {
	for d, queries := range answers(t, map[databases.Dialect][]string{
		databases.Postgres: {
			"UPDATE books SET price = price + 1, title = 'a' FROM pens p WHERE p.id = books.id AND price > 1 RETURNING price, title",
			"INSERT INTO books (id, price) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET price = 3 WHERE books.id > 1 RETURNING id, price",
			"MERGE INTO books USING pens p ON p.id = books.id WHEN NOT MATCHED THEN INSERT (id) VALUES (3) WHEN MATCHED THEN UPDATE SET price = 2",
			"WITH a AS (SELECT 1 AS id) UPDATE books SET price = CASE WHEN a.id IS DISTINCT FROM 1 THEN 2 ELSE 3 END FROM a WHERE books.id = a.id",
		},
		databases.SQLite: {
			"UPDATE books SET price = price + 1, title = 'a' FROM pens p WHERE p.id = books.id RETURNING price, title",
			"UPDATE books SET price = 1 ORDER BY id LIMIT 3",
			"INSERT INTO books (id, price) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET price = 3 WHERE books.id > 1 RETURNING id, price",
		},
		databases.MySQL: {
			"UPDATE books SET price = price + 1, title = 'a' WHERE id = 1 LIMIT 2",
			"INSERT INTO books (id, price) VALUES (1, 2) ON DUPLICATE KEY UPDATE price = VALUES(price), title = 'a'",
		},
	}) {
		r := benchRewriter(t, d)
		for _, query := range queries {
			p := r.Plan(query)
			if p.Verdict != guard.Guard {
				t.Fatalf("%v %v: %s", p.Verdict, p.Refusal, query)
			}
			text := opened(t, d, query)
			set := strings.LastIndex(query, "SET ")
			if set < 0 {
				set = strings.LastIndex(query, "UPDATE ")
			}
			for n := range p.Source.Fragments {
				if p.Source.Fragments[n].Op != render.OpAssign {
					continue
				}
				end := p.Source.Fragments[n].At
				for _, tok := range text.Tokens[:len(text.Tokens)-1] {
					inSet := int(tok.End) > set && tok.End <= end && !strings.Contains(query[set:tok.End], "(")
					ok := moved(p, text, func(edits []render.Fragment) { edits[n].At = tok.End })
					if tok.End == end && !ok || !inSet && tok.End != end && ok && !strings.Contains(query[set:end], "(") {
						t.Errorf("%v: the mark behind byte %d is sent: %v\n%s", d, tok.End, ok, query)
					}
				}
			}
		}
	}
}

// Inserted text and a token of the statement without a blank between them don't become one token.
func TestGuardsBesideSigns(t *testing.T) {
	for d, queries := range answers(t, map[databases.Dialect][]string{
		databases.Postgres: {`UPDATE books SET serial=CASE WHEN price>6 THEN serial+1 ELSE serial+2 END`, `UPDATE"books"SET"price"=(1)WHERE(id)=-1`, "INSERT INTO books(id)VALUES/**/( --\n$1/**/)"},
		databases.SQLite:   {`UPDATE books SET serial=serial+1`, `UPDATE[books]SET[price]=(1)WHERE(id)=-1`, "DELETE FROM`books`WHERE-1=`id`", "UPDATE books SET price=#x", "DELETE FROM books WHERE f(1)AND id=$a::b(c)AND id=:n"},
		databases.MySQL:    {"UPDATE books SET serial=serial+1", "UPDATE`books`SET`price`=(1)WHERE(`id`)=-1", "INSERT INTO books(id)VALUES/**/(#\n1#\n)", "DELETE FROM`books`WHERE-1=`id`"},
	}) {
		for _, rules := range []string{"row", "both", "serialboth", "key", "lockall", "claim", "versionboth"} {
			for _, query := range queries {
				p := (&sample{sql: query}).plan(t, d, rules)
				if p.Verdict == guard.Refuse && p.Refusal.Reason == string(advise.Damaged) {
					t.Errorf("%v, %s: %s: %s", d, rules, query, p.Refusal.Reason)
				}
			}
		}
	}
}

// A plan isn't rendered if an inserted fragment would put a part of the statement into a comment, a string or a
// bracket.
func TestFragmentsAreWhole(t *testing.T) {
	for d := range answers(t, map[databases.Dialect]bool{databases.Postgres: true, databases.SQLite: true, databases.MySQL: true}) {
		r := benchRewriter(t, d)
		const query = "UPDATE books SET price = (1) WHERE id = 2 OR id = 3"
		p := r.Plan(query)
		text := opened(t, d, query)
		for piece, whole := range map[string]bool{
			"/* ": false, "( ": false, ") OR (": false, "' ": false, "-- ": false, "1 OR ": true, "/*(*/ ": false, "- ": true, "E": true,
		} {
			ok := moved(p, text, func(edits []render.Fragment) {
				edits[0] = render.Fragment{At: int32(strings.Index(query, "id = 2")), Text: piece}
			})
			if ok != whole {
				t.Errorf("%v: %q is sent: %v", d, piece, ok)
			}
		}
	}
}

// If the reader counts the placeholders wrongly, the plan isn't rendered.
func TestPlaceholdersAreCounted(t *testing.T) {
	r := benchRewriter(t, databases.SQLite)
	for _, query := range []string{
		"UPDATE books SET price = ?, title = ? WHERE id = ?",
		"INSERT INTO books (id, price) VALUES (?, ?), (?, ?)",
		"DELETE FROM books WHERE id = ?",
		"DELETE FROM books WHERE id IN (?" + strings.Repeat(", ?", 16) + ")",
	} {
		p := r.Plan(query)
		text := opened(t, databases.SQLite, query)
		if p.Verdict != guard.Guard || !p.RenderParameterised(text) {
			t.Fatalf("%v %v: %s", p.Verdict, p.Refusal, query)
		}
		for name, wrong := range map[string]func(p *Plan){
			"one more":             func(p *Plan) { p.Inputs++ },
			"one less":             func(p *Plan) { p.Inputs-- },
			"one more before each": func(p *Plan) { moveInputs(p, 1) },
			"one less before each": func(p *Plan) { moveInputs(p, -1) },
		} {
			other := *p
			other.Source.Plan, other.Form = &other, new(render.Form)
			other.Source.Fragments = append([]render.Fragment(nil), p.Source.Fragments...)
			wrong(&other)
			if other.RenderParameterised(text) {
				t.Errorf("%s: it is sent: %s", name, name)
			}
		}
	}
}

// moveInputs changes the number of placeholders before each edit.
func moveInputs(p *Plan, by int32) {
	for i := range p.Source.Fragments {
		p.Source.Fragments[i].Inputs += by
	}
}

// A table may have a name that is a keyword after the verb.
func TestTablesNamedLikeKeywords(t *testing.T) {
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
