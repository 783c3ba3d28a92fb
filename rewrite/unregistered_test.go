package rewrite

import (
	"errors"
	"slices"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// The tables that a text writes are named unless they are registered, exempt or sqlfence's own.
func TestUnregisteredTablesOfATextAreNamed(t *testing.T) {
	tables := []Table{
		{Name: "books", FenceColumn: "fence_token"}, {Schema: "shop", Name: "hats", Ledger: true},
		{Name: "drafts", Exempt: true},
	}
	all, postgres, mysql := []databases.Dialect{databases.Postgres, databases.SQLite, databases.MySQL},
		[]databases.Dialect{databases.Postgres}, []databases.Dialect{databases.MySQL}
	for _, tt := range []struct {
		in    []databases.Dialect
		query string
		want  []string
	}{
		{all, "UPDATE pens SET price = 1", []string{"pens"}},
		{all, "INSERT INTO shop.pens (id) VALUES (1)", []string{"shop.pens"}},
		{all, "DELETE FROM pens WHERE id = 1; INSERT INTO ink VALUES (1); DELETE FROM pens", []string{"pens", "ink"}},
		{all, "UPDATE books SET price = 1; UPDATE drafts SET id = 1; UPDATE shop.hats SET id = 1", nil},
		{all, "UPDATE attic.hats SET id = 1", []string{"attic.hats"}},
		{all, "UPDATE hats SET id = 1", nil}, // the session may find shop.hats
		{all, "SELECT id FROM pens", nil},
		{all, "CREATE TABLE pens (id integer)", nil},
		{all, "UPDATE fencing_tokens SET token = 1", nil},
		{all, "UPDATE pens SET title = 'never closed", nil},
		{all, "", nil},
		{postgres, "WITH x AS (DELETE FROM pens RETURNING id) INSERT INTO books (id) SELECT id FROM x", []string{"pens"}},
		{postgres, "COPY pens (id) FROM STDIN", []string{"pens"}},
		{postgres, "COPY pens TO STDOUT", nil},
		{postgres, `TRUNCATE TABLE ONLY pens, "Ink", books CASCADE`, []string{"pens", "Ink"}},
		{postgres, "TRUNCATE", nil},
		{postgres, "COPY", nil},
		{postgres, "MERGE INTO pens USING books ON true WHEN MATCHED THEN DELETE", []string{"pens"}},
		{mysql, "UPDATE pens JOIN books ON pens.id = books.id SET pens.price = 1, books.price = 2", []string{"pens"}},
		{mysql, "DELETE pens, ink FROM pens JOIN ink JOIN books", []string{"pens", "ink"}},
		{mysql, "REPLACE INTO pens VALUES (1)", []string{"pens"}},
		{mysql, "TRUNCATE pens", []string{"pens"}},
		{mysql, "LOAD DATA LOCAL INFILE 'x' INTO TABLE pens", []string{"pens"}},
	} {
		for _, d := range tt.in {
			r, err := New(d, tables)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Unregistered(tt.query); !slices.Equal(got, tt.want) {
				t.Errorf("%v: %s: %q, want %q", d, tt.query, got, tt.want)
			}
		}
	}
	every, err := New(databases.SQLite, []Table{{Pattern: true, Name: "*", Ledger: true}})
	if err != nil {
		t.Fatal(err)
	}
	if got := every.Unregistered("UPDATE pens SET price = 1"); got != nil {
		t.Errorf("under a pattern: %q", got)
	}
	unknown, err := New(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := unknown.Unregistered("UPDATE pens SET price = 1"); got != nil {
		t.Errorf("of a dialect that isn't read: %q", got)
	}
}

// For each sample Unregistered names the tables that a pattern would guard. Under this pattern it names no table.
func TestUnregisteredAsByPattern(t *testing.T) {
	without, patterns := make(map[databases.Dialect]*Rewriter), make(map[databases.Dialect]*Rewriter)
	for _, d := range guardedDialects(t) {
		var err, patternErr error
		without[d], err = New(d, nil)
		patterns[d], patternErr = New(d, []Table{{Pattern: true, Name: "*", Ledger: true}})
		if err := errors.Join(err, patternErr); err != nil {
			t.Fatal(err)
		}
	}
	eachSample(t, func(t *testing.T, d databases.Dialect, s *sample, rules string) {
		none, every := without[d], patterns[d]
		if got := every.Unregistered(s.sql); got != nil {
			t.Errorf("%q though a pattern stands for all: %q", got, s.sql)
		}
		plan := byPattern(t, d, s, rules)
		if plan.Verdict != guard.Guard {
			return
		}
		var want []string
		for i := range plan.Tables {
			covered, _, _ := plan.Covered(i)
			want = append(want, covered.FullName())
		}
		var got []string
		for _, name := range none.Unregistered(s.sql) { // a pattern of all schemas makes no difference between them
			if name = name[strings.LastIndexByte(name, '.')+1:]; !slices.Contains(got, name) {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, a pattern guards %q: %q", got, want, s.sql)
		}
	})
}

func BenchmarkUnregistered(b *testing.B) {
	r, err := New(databases.Postgres, []Table{{Name: "books", Ledger: true}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Unregistered("UPDATE pens SET price = $1, title = $2 WHERE id = $3")
	}
}
