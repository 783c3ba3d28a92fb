package rewrite

import (
	"fmt"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// TestMostArguments: if the statement can't have more arguments, the guard's values are written into the text.
func TestMostArguments(t *testing.T) {
	for d, most := range answers(t, map[databases.Dialect]int{databases.Postgres: 65535, databases.SQLite: 32766, databases.MySQL: 65535}) {
		b := sqltext.Builder{Dialect: says(d)}
		b.Placeholder(1, sqltext.Untyped)
		placeholder := strings.TrimSuffix(b.String(), "1")
		fits := 2 // tokens, with a key and a value for each
		if !says(d).Capabilities().Numbers.Is() {
			fits = 1 // each is passed twice
		}
		for _, tt := range []struct {
			inputs, tokens int
			params         bool // of the plan
			literal        bool // what is rendered
		}{
			{most, 1, false, true},
			{most - 4, 1, false, true},
			{most - 5, 1, true, false},
			{most - 5, fits, true, false},
			{most - 5, fits + 1, true, true},
		} {
			s := sample{sql: fmt.Sprintf("UPDATE books SET price = %s%d WHERE id = 1", placeholder, tt.inputs)}
			if tt.inputs > says(d).MaxNumbered() {
				s.sql = "UPDATE books SET price = 1 WHERE id IN (?" + strings.Repeat(", ?", tt.inputs-1) + ")"
			}
			p := s.plan(t, d, "key")
			if p.Verdict != guard.Guard || p.Inputs != tt.inputs || p.Params != tt.params {
				t.Fatalf("%v, %d arguments: %v, %d, %v", d, tt.inputs, p.Verdict, p.Inputs, p.Params)
			}
			r := renderedOf(t, p, Values{Tables: []TableValues{{Tokens: make([]Token, tt.tokens)}}, Literal: !p.Params})
			if got := len(r.Args); (got == 0) != tt.literal || tt.inputs+got > most {
				t.Errorf("%v, %d arguments and %d tokens: %d more", d, tt.inputs, tt.tokens, got)
			}
		}
	}
}
