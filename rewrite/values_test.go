package rewrite

import (
	"errors"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// If a value is missing, Render returns an error, and never a statement without its guard.
func TestRenderWithoutValues(t *testing.T) {
	one := []Token{{Name: "books", Key: "1", Value: 7}}
	two := []Token{{Name: "books/1", Key: "1", Value: 7}, {Name: "books/2", Key: "2", Value: 8}}
	const (
		update = "UPDATE books SET price = 1"
		both   = "WITH a AS (UPDATE orders SET total = 1) UPDATE books SET price = 1"
		rows   = "INSERT INTO books (id, price) VALUES (1, 2), (2, 3)"
		twice  = "WITH a AS (INSERT INTO books (id) VALUES (1), (2)) INSERT INTO books (id) VALUES (1)"
	)
	for _, tt := range []struct {
		name, rules, sql, want string // want is a part of the error, "" for none
		tables                 []TableValues
	}{
		{"nothing", "row", update, "values for 0 tables", nil},
		{"no token", "row", update, "no token", make([]TableValues, 1)},
		{"one", "row", update, "", []TableValues{{Tokens: one}}},
		{"unfenced", "row", update, "", []TableValues{{Unfenced: true}}},
		{"unfenced with a token", "row", update, "takes none", []TableValues{{Unfenced: true, Tokens: one}}},
		{"several without keys", "row", update, "2 tokens for a table without Key", []TableValues{{Tokens: two}}},
		{"a table too many", "row", update, "values for 2 tables", []TableValues{{Tokens: one}, {Tokens: one}}},
		{"a table too few", "pair", both, "values for 1 tables", []TableValues{{Tokens: one}}},
		{"the second has none", "pair", both, `table "books": no token`, []TableValues{{Tokens: one}, {}}},
		{"serial", "serial", update, "", make([]TableValues, 1)},
		{"serial with a token", "serial", update, "takes none", []TableValues{{Tokens: one}}},
		{"keys", "key", update, "", []TableValues{{Tokens: two}}},
		{"one key", "key", rows, "", []TableValues{{Tokens: one}}},
		{"rows of no token", "key", rows, "0 entries in Rows, want 2", []TableValues{{Tokens: two}}},
		{"rows", "key", rows, "", []TableValues{{Tokens: two, Rows: []int{0, 1}}}},
		{"a row without", "key", rows, "1 entries in Rows, want 2", []TableValues{{Tokens: two, Rows: []int{0}}}},
		{"a row's token is none", "key", rows, "token 2 of 2", []TableValues{{Tokens: two, Rows: []int{0, 2}}}},
		{"a row's token is negative", "key", rows, "token -1 of 2", []TableValues{{Tokens: two, Rows: []int{0, -1}}}},
		{"rows of two targets", "key", twice, "", []TableValues{{Tokens: two, Rows: []int{0, 1, 0}}}},
		{"rows of one target of two", "key", twice, "2 entries in Rows, want 3", []TableValues{{Tokens: two, Rows: []int{0, 1}}}},
		{"a claim that isn't proved", "claim", update, "has to prove claims", []TableValues{{Unfenced: true}}},
		{"no claim", "claim", update, "no token", make([]TableValues, 1)},
		{"claims", "claim", update, "", []TableValues{{Tokens: two}}},
		{"a takeover", "claim", update + ", attempt = attempt + 1", "", []TableValues{{Unfenced: true}}},
		{"a takeover with claims", "claim", update + ", attempt = attempt + 1", "", []TableValues{{Tokens: two}}},
		{"a takeover by the caller", "takeover", update, "", []TableValues{{Unfenced: true}}},
		{"a takeover beside another write", "claim", "WITH u AS (UPDATE books SET attempt = 2 WHERE id = 1) " + update, "has to prove claims", []TableValues{{Unfenced: true}}},
		{"new rows of a claim's table", "claim", rows, "", []TableValues{{Unfenced: true}}},
		{"an unfenced upsert of claims", "claim", rows + " ON CONFLICT (id) DO UPDATE SET price = 1", "has to prove claims", []TableValues{{Unfenced: true}}},
		{"to pass", "row", "SELECT 1", "Render of a plan to pass", []TableValues{{Tokens: one}}},
		{"to refuse", "row", "TRUNCATE books", "this kind of statement", []TableValues{{Tokens: one}}},
	} {
		for _, literal := range []bool{false, true} {
			p := (&sample{sql: tt.sql}).plan(t, databases.Postgres, tt.rules)
			sql, _, err := p.Render(Values{Tables: tt.tables, Literal: literal})
			switch {
			case err == nil && tt.want != "", err != nil && (tt.want == "" || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%s: got %v, want an error with %q", tt.name, err, tt.want)
			case err != nil && sql != "":
				t.Errorf("%s: a statement beside the error: %s", tt.name, sql)
			}
		}
	}
}

func TestDefaultOfNoGuard(t *testing.T) {
	for sql, want := range map[string]string{"SELECT 1": "Render of a plan to pass", "TRUNCATE books": "this kind of statement"} {
		if r, _, err := (&sample{sql: sql}).plan(t, databases.Postgres, "row").Default(); r != "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want an error with %q", sql, r, err, want)
		}
	}
}

// The rows of each target have the tokens that Rows assigns to them.
func TestRowsOfSeveralTargets(t *testing.T) {
	p := (&sample{sql: "WITH a AS (INSERT INTO books (id) VALUES (1), (2)), o AS (UPDATE orders SET total = 1), b AS (INSERT INTO books (id) VALUES (2)) " +
		"INSERT INTO books (id) VALUES (1), (2)"}).plan(t, databases.Postgres, "key")
	v := Values{Literal: true, Tables: []TableValues{{Rows: []int{0, 1, 1, 0, 1},
		Tokens: []Token{{Name: "books/1", Key: "1", Value: 7}, {Name: "books/2", Key: "2", Value: 8}}}}}
	got := renderedOf(t, p, v).SQL
	for _, want := range []string{"VALUES (1, 7), (2, 8)), o", "VALUES (2, 8)) INSERT", ") VALUES (1, 7), (2, 8)"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s isn't in %s", want, got)
		}
	}
}

// With the guard's text a statement may have two readings, one of which has no guard. Render refuses this.
func TestAmbiguousRendering(t *testing.T) {
	p := (&sample{sql: `UPDATE books SET title = 'C:\' WHERE id = 1`}).plan(t, databases.Postgres, "key")
	render := func(key string) error {
		_, _, err := p.Render(Values{Literal: true, Tables: []TableValues{{Tokens: []Token{{Key: key, Value: 7}}}}})
		return err
	}
	if err := render("o'neill"); err != nil {
		t.Error(err)
	}
	var refusal *guard.Refusal
	if err := render("x--"); !errors.As(err, &refusal) || refusal.Offset != -1 || refusal.Table != -1 || !strings.Contains(refusal.Reason, "standard_conforming_strings") {
		t.Errorf("got %v", err)
	}
}
