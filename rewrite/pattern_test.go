package rewrite

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// byPattern plans a statement where only a pattern is registered.
func byPattern(t testing.TB, d databases.Dialect, s *sample, rules string) *Plan {
	t.Helper()
	pattern := rulesets[rules].table
	pattern.Name, pattern.Pattern = "*", true
	r, err := New(d, []Table{pattern})
	if err != nil {
		t.Fatal(err)
	}
	return r.PlanFor(s.sql, variantOf(rules))
}

// A statement is planned under a pattern as if its written tables had been registered by name, or refused.
func TestPatternIsAsByName(t *testing.T) {
	eachSample(t, func(t *testing.T, d databases.Dialect, s *sample, rules string) {
		got := byPattern(t, d, s, rules)
		table := rulesets[rules].table
		tables := []Table{table}
		add := func(name string) {
			table.Name = name
			if !slices.ContainsFunc(tables, func(t Table) bool { return t.Name == name }) {
				tables = append(tables, table)
			}
		}
		for _, other := range otherTables(rules) {
			add(other.Name)
		}
		if got.Verdict == guard.Guard {
			tables = nil
			for i := range got.Tables {
				covered, pattern, ok := got.Covered(i)
				if !ok || pattern != 0 || covered.Schema != "" || covered.Pattern {
					t.Fatalf("table %d is %+v of pattern %d", i, covered, pattern)
				}
				add(covered.Name)
			}
		}
		r, err := New(d, tables)
		if err != nil {
			t.Fatal(err)
		}
		want := r.PlanFor(s.sql, variantOf(rules))
		switch {
		case got.Verdict == guard.Refuse && want.Verdict != guard.Refuse:
			t.Logf("REFUSED-MORE %v: %s: %.150q", want.Verdict, got.Refusal.Reason, s.sql)
		case got.Verdict != want.Verdict:
			t.Errorf("%v, by name %v: %q", got.Verdict, want.Verdict, s.sql)
		case got.Verdict == guard.Guard:
			a, b := renderedOf(t, got, valuesOf(got, rules)), renderedOf(t, want, valuesOf(want, rules))
			nonces := strings.NewReplacer(got.Source.Nonce, "", want.Source.Nonce, "")
			if nonces.Replace(fmt.Sprint(a)) != nonces.Replace(fmt.Sprint(b)) {
				t.Errorf("%+v, by name %+v", a, b)
			}
		}
	})
}

// TestPatternCovers shows which tables a pattern covers.
func TestPatternCovers(t *testing.T) {
	fence := Table{FenceColumn: "fence_token"}
	of := func(schema, name string, change func(*Table)) Table {
		t := fence
		t.Schema, t.Name = schema, name
		if change != nil {
			change(&t)
		}
		return t
	}
	pattern := func(t *Table) { t.Pattern = true }
	exempt := func(t *Table) { *t = Table{Schema: t.Schema, Name: t.Name, Exempt: true} }
	for _, c := range []struct {
		tables []Table
		sql    string
		want   string // its written tables, or its refusal; empty if it passes
	}{
		{[]Table{of("", "*", pattern)}, "UPDATE books SET a = 1", "books"},
		{[]Table{of("", "*", pattern)}, "UPDATE shop.books SET a = 1", "books"},
		{[]Table{of("shop", "shop.*", pattern)}, "UPDATE shop.books SET a = 1", "shop.books"},
		{[]Table{of("shop", "shop.*", pattern)}, "UPDATE books SET a = 1", "shop.books"},
		{[]Table{of("shop", "shop.*", pattern)}, "UPDATE blog.books SET a = 1", ""},
		{[]Table{of("shop", "shop.*", pattern), of("blog", "blog.*", pattern)}, "UPDATE blog.books SET a = 1", "blog.books"},
		{[]Table{of("shop", "shop.*", pattern), of("blog", "blog.*", pattern)}, "UPDATE books SET a = 1", "refused"},
		{[]Table{of("", "*", pattern), of("blog", "blog.*", pattern)}, "UPDATE shop.books SET a = 1", "books"},
		{[]Table{of("", "*", pattern), of("blog", "blog.*", pattern)}, "UPDATE books SET a = 1", "refused"},
		{[]Table{of("", "*", pattern), of("shop", "books", nil)}, "UPDATE books SET a = 1", "refused"},
		{[]Table{of("", "*", pattern), of("shop", "books", nil)}, "UPDATE shop.books SET a = 1", "shop.books"},
		{[]Table{of("", "*", pattern), of("shop", "books", nil)}, "UPDATE pens SET a = 1", "pens"},
		{[]Table{of("", "*", pattern), of("", "books", nil)}, "UPDATE books SET a = 1", "books"},
		{[]Table{of("blog", "blog.*", pattern), of("shop", "books", nil)}, "UPDATE books SET a = 1", "refused"},
		{[]Table{of("shop", "shop.*", pattern), of("shop", "books", nil)}, "UPDATE books SET a = 1", "shop.books"},
		{[]Table{of("blog", "books", nil), of("shop", "books", nil)}, "UPDATE books SET a = 1", "refused"},
		{[]Table{of("blog", "books", nil), of("shop", "books", nil)}, "DELETE FROM shop.books", "shop.books"},
		{[]Table{of("blog", "books", nil), of("shop", "books", nil)}, "UPDATE other.books SET a = 1", ""},
		{[]Table{of("", "*", pattern), of("", "logs", exempt)}, "UPDATE logs SET a = 1", ""},
		{[]Table{of("", "*", pattern), of("", "logs", exempt)}, "UPDATE shop.logs SET a = 1", ""},
		{[]Table{of("", "*", pattern), of("shop", "logs", exempt)}, "UPDATE shop.logs SET a = 1", ""},
		{[]Table{of("", "*", pattern), of("shop", "logs", exempt)}, "UPDATE logs SET a = 1", "logs"},
		{[]Table{of("", "*", pattern)}, "SELECT * FROM books", ""},
		{[]Table{of("", "*", pattern)}, "CREATE TABLE books (id int)", ""},
		{[]Table{of("", "*", pattern)}, "DROP TABLE books", "refused"},
		{[]Table{of("", "*", pattern), of("", "logs", exempt)}, "TRUNCATE TABLE books", "refused"},
		{[]Table{of("", "*", pattern), of("", "logs", exempt)}, "DROP TABLE logs", "refused"},
		{[]Table{of("", "*", pattern)}, "UPDATE fencing_tokens SET token = 1", "refused"},
		{[]Table{of("", "*", pattern)}, "INSERT INTO books (a, fence_token) VALUES (1, 2)", "refused"},
	} {
		for _, d := range guardedDialects(t) {
			r, err := New(d, c.tables)
			if err != nil {
				t.Fatal(err)
			}
			p, got := r.Plan(c.sql), ""
			switch p.Verdict {
			case guard.Refuse:
				got = "refused"
			case guard.Guard:
				for i := range p.Tables {
					got += rulesOf(p, i).FullName()
				}
			}
			if got != c.want {
				t.Errorf("%v: %s: %q, want %q", d, c.sql, got, c.want)
			}
		}
	}
	for _, tables := range [][]Table{
		{of("", "*", pattern), of("", "*", pattern)},
		{of("shop", "*", pattern), of("shop", "*", pattern)},
		{of("", "logs", exempt), of("", "logs", nil)},
		{of("", "logs", nil), of("", "logs", exempt)},
	} {
		if _, err := New(guardedDialects(t)[0], tables); err == nil {
			t.Errorf("%+v are registered", tables)
		}
	}
}

// An exempt table, and a table that no pattern covers, can be filled by COPY and emptied by TRUNCATE.
func TestPatternInBulk(t *testing.T) {
	tables := []Table{{Name: "*", Pattern: true, Ledger: true}, {Name: "logs", Exempt: true}, {Name: "tmp", Exempt: true},
		{Name: "pens", Ledger: true}}
	shops := []Table{{Schema: "shop", Name: "*", Pattern: true, Ledger: true}}
	for _, c := range []struct {
		d      databases.Dialect
		tables []Table
		sql    string
		passes bool
	}{
		{databases.Postgres, tables, "COPY logs FROM STDIN", true},
		{databases.Postgres, tables, `copy public."logs" (id, a) from stdin with (format csv)`, true},
		{databases.Postgres, tables, "TRUNCATE logs", true},
		{databases.Postgres, tables, "TRUNCATE TABLE ONLY logs, public.tmp * RESTART IDENTITY RESTRICT", true},
		{databases.MySQL, tables, "TRUNCATE TABLE logs", true},
		{databases.MySQL, tables, "TRUNCATE `logs`", true},
		{databases.Postgres, shops, "COPY blog.books FROM STDIN", true},

		{databases.Postgres, tables, "COPY books FROM STDIN", false},
		{databases.Postgres, tables, "COPY pens FROM STDIN", false},
		{databases.Postgres, tables, "COPY fencing_tokens FROM STDIN", false},
		{databases.Postgres, tables, "COPY BINARY logs FROM STDIN", false},
		{databases.Postgres, tables, "COPY logs.books FROM STDIN", false},
		{databases.Postgres, tables, "COPY logs FROM STDIN; COPY books FROM STDIN", false},
		{databases.Postgres, tables, "TRUNCATE logs CASCADE", false},
		{databases.Postgres, tables, "TRUNCATE logs, books", false},
		{databases.Postgres, tables, "TRUNCATE logs, pens", false},
		{databases.Postgres, tables, "TRUNCATE logs, fencing_tokens", false},
		{databases.MySQL, tables, "TRUNCATE logs.books", false},
		{databases.Postgres, shops, "COPY books FROM STDIN", false},
		{databases.Postgres, shops, "COPY shop.books FROM STDIN", false},
	} {
		r, err := New(c.d, c.tables)
		if err != nil {
			t.Fatal(err)
		}
		if p := r.Plan(c.sql); (p.Verdict == guard.Pass) != c.passes || p.Verdict == guard.Guard {
			t.Errorf("%v: %s: %v %s", c.d, c.sql, p.Verdict, p.Refusal.Reason)
		}
	}
}

// Every spelling of a table in a statement gives the same name, and so the same token.
func TestPatternSpellings(t *testing.T) {
	long := strings.Repeat("x", 70)
	for _, c := range []struct{ sql, want string }{
		{"UPDATE Books SET a = 1", "books"},
		{`UPDATE "books" SET a = 1`, "books"},
		{`UPDATE "Books" SET a = 1`, "Books"},
		{`UPDATE U&"b\006fks" SET a = 1`, "boks"},
		{"UPDATE ONLY public.books AS b SET a = 1", "books"},
		{"UPDATE " + long + " SET a = 1", long[:63]},
		{`UPDATE "` + long + `" SET a = 1`, long[:63]},
		{"UPDATE BÜCHER SET a = 1", "refused"},
		{`UPDATE "BÜCHER" SET a = 1`, "BÜCHER"},
		{"PREPARE TRANSACTION 'books'", ""},
		{"PREPARE transaction AS DELETE FROM books", "refused"},
		{"PREPARE transaction (text) AS DELETE FROM books", "refused"},
		{"UPDATE bücher SET a = 1", "refused"},
	} {
		r, err := New(databases.Postgres, []Table{{Name: "*", Pattern: true, FenceColumn: "fence_token"}})
		if err != nil {
			t.Fatal(err)
		}
		p, got := r.Plan(c.sql), ""
		switch p.Verdict {
		case guard.Guard:
			got = rulesOf(p, 0).Name
		case guard.Refuse:
			got = "refused"
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q (%+v)", c.sql, got, c.want, p.Refusal)
		}
	}
}

// A COPY passes if its table is exempt. It is refused if its table is guarded, or if its text doesn't show the table.
func TestPatternAndCopy(t *testing.T) {
	tables := []Table{
		{Name: "*", Pattern: true, FenceColumn: "fence_token"}, {Name: "pens", Exempt: true},
		{Name: "binary", Exempt: true}, {Name: "pläne", Exempt: true}, {Name: "ink", Serial: "version"},
	}
	for sql, want := range map[string]guard.Verdict{
		"COPY pens FROM STDIN":                 guard.Pass,
		"COPY shop.pens (id) FROM STDIN":       guard.Pass,
		`/* a */ copy "pens" (id) from 'file'`: guard.Pass,
		"COPY books FROM STDIN":                guard.Refuse,
		"COPY books (pens) FROM STDIN":         guard.Refuse,
		"COPY ink FROM STDIN":                  guard.Refuse,
		"COPY BINARY books FROM STDIN":         guard.Refuse,
		"COPY PLÄNE FROM STDIN":                guard.Refuse,
		"COPY fencing_tokens FROM STDIN":       guard.Refuse,
		"COPY pens":                            guard.Refuse,
		"COPY":                                 guard.Refuse,
		"TRUNCATE pens":                        guard.Pass,
		"TRUNCATE pens CASCADE":                guard.Refuse, // empties others, too
	} {
		r, err := New(databases.Postgres, tables)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Plan(sql); got.Verdict != want {
			t.Errorf("%s: %v %s, want %v", sql, got.Verdict, got.Refusal.Reason, want)
		}
	}
}
