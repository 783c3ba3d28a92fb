package rewrite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// insertions renders the plan and checks that the result is the statement with inserted text and nothing else. It
// renders the plan a second time from a source of NUL bytes, which neither a statement nor a guard contains. The second
// text shows which bytes are the statement's.
func insertions(p *Plan, v Values) (r rendered, err error) {
	r.SQL, r.Args, err = p.Render(v)
	if err != nil {
		return r, err
	}
	masked := fresh(p)
	masked.Source.Src = strings.Repeat("\x00", len(p.Source.Src))
	mask, _, err := masked.Render(v)
	if err != nil {
		return r, err
	}
	if len(mask) != len(r.SQL) {
		return r, fmt.Errorf("the guard depends on the statement's bytes: %q", r.SQL)
	}
	var own strings.Builder
	for i := range mask {
		if mask[i] == 0 {
			own.WriteByte(r.SQL[i])
		} else if mask[i] != r.SQL[i] {
			return r, fmt.Errorf("the guard depends on the statement's bytes: %q", r.SQL)
		}
	}
	if own.String() != p.Source.Src {
		return r, fmt.Errorf("without the guard it is %q", own.String())
	}
	return r, nil
}

// fresh returns the plan without a default form, so that each Render writes the text.
func fresh(p *Plan) *Plan { return p.Knowing(new(session.UniqueKeys)) }

// TestOnlyInserts shows that a guarded statement is the user's statement, byte for byte, with inserted text.
func TestOnlyInserts(t *testing.T) {
	eachSample(t, func(t *testing.T, d databases.Dialect, s *sample, rules string) {
		p := s.plan(t, d, rules)
		if p.Verdict != guard.Guard {
			return
		}
		r, err := insertions(p, valuesOf(p, rules))
		if err != nil {
			t.Error(err)
		}
		if p.Source.Src != s.sql {
			t.Errorf("it was made of %q", p.Source.Src)
		}
		if r.SQL == s.sql && !mayInsertNothing(p, rules) {
			t.Error("nothing was inserted")
		}
	})
}

// TestWordsSurvive checks that no inserted text joins a token of the statement or begins a comment around one: the
// scanner finds all of the statement's tokens, in order.
func TestWordsSurvive(t *testing.T) {
	eachSample(t, func(t *testing.T, d databases.Dialect, s *sample, rules string) {
		p := s.plan(t, d, rules)
		if p.Verdict != guard.Guard {
			return
		}
		sql := renderedOf(t, p, valuesOf(p, rules)).SQL
		if strings.Contains(sql, "/*DEFAULT*/") {
			return // it goes into a comment on purpose
		}
		for _, word := range []string{"DELETE", "delete", "FROM", "from", "VALUES", "values", "(", ")"} { // likewise
			sql = strings.ReplaceAll(sql, "/*"+word+"*/", word+" ")
		}
		own, rendered := tokenTexts(t, d, s.sql), tokenTexts(t, d, sql)
		n := 0
		for i := 0; n < len(own) && i < len(rendered); i++ {
			// A bare placeholder got its number.
			if rendered[i] == own[n] || own[n] == "?" && strings.HasPrefix(rendered[i], "?") {
				n++
			}
		}
		if n < len(own) {
			t.Errorf("%q is lost in %s", own[n], sql)
		}
	})
}

// scan splits a statement into tokens.
func scan(d databases.Dialect, sql string) ([]lex.Token, *lex.Error) {
	return lex.Scan(says(d).Grammar.Lex, sql, lex.EscapesUnknown, nil)
}

// tokenTexts returns the texts of a statement's tokens.
func tokenTexts(t testing.TB, d databases.Dialect, sql string) []string {
	t.Helper()
	toks, err := scan(d, sql)
	if err != nil {
		t.Fatalf("%q: at %d: %s", sql, err.Offset, err.Reason)
	}
	texts := make([]string, len(toks))
	for i, tok := range toks {
		texts[i] = sql[tok.Start:tok.End]
	}
	return texts
}

// TestRenderIsDeterministic compares the texts of a second rendering, of another plan of the same statement, and of
// Default.
func TestRenderIsDeterministic(t *testing.T) {
	eachSample(t, func(t *testing.T, d databases.Dialect, s *sample, rules string) {
		p, again := s.plan(t, d, rules), s.plan(t, d, rules)
		if p.Verdict != again.Verdict || p.Refusal != again.Refusal || !slices.Equal(keysOf(p), keysOf(again)) || !slices.EqualFunc(p.Targets, again.Targets, sameNewKeys) {
			t.Fatalf("got %+v, then %+v", p, again)
		}
		if p.Verdict != guard.Guard {
			return
		}
		v := valuesOf(p, rules)
		first := renderedOf(t, p, v)
		for _, r := range []rendered{renderedOf(t, p, v), renderedOf(t, again, v)} {
			if r.SQL != first.SQL || !slices.Equal(r.Args, first.Args) {
				t.Errorf("got %+v, then %+v", first, r)
			}
		}
		for i := range v.Tables {
			v.Tables[i].Tokens = v.Tables[i].Tokens[:min(1, len(v.Tables[i].Tokens))]
			v.Tables[i].Rows, v.Tables[i].Unsealed = nil, false
			if needsNone(p, i) {
				v.Tables[i] = TableValues{Unfenced: true}
			}
		}
		if p.Replaces() != nil {
			return // its default form needs the table's unique keys
		}
		one := renderedOf(t, p, Values{Tables: v.Tables})
		if form, _, err := p.Default(); err == render.ErrNoParams {
			if p.Params || len(one.Args) > 0 {
				t.Errorf("Default is %q, %v, and Render returns %+v", form, err, one)
			}
			return
		}
		for i := range v.Tables {
			if v.Tables[i].Unfenced && !needsNone(p, i) {
				return
			}
		}
		if form, args, err := p.Default(); err != nil || unsafe.StringData(form) != unsafe.StringData(one.SQL) || !slices.Equal(args, one.Args) {
			t.Errorf("Default is %q, %v, want %+v, once", form, err, one)
		}
		if sql, args, err := fresh(p).Render(Values{Tables: v.Tables}); err != nil || sql != one.SQL || !slices.Equal(args, one.Args) {
			t.Errorf("Default is %+v, want %s %v %v", one, sql, args, err)
		}
	})
}

func sameNewKeys(a, b render.Written) bool {
	return a.AssignsKey == b.AssignsKey && slices.Equal(a.NewKeys, b.NewKeys)
}

// TestPlaceholdersKeepTheirNumbers shows that the user's placeholders keep their numbers, that
// the guard's follow without a gap, and that there is an argument for each.
func TestPlaceholdersKeepTheirNumbers(t *testing.T) {
	eachSample(t, func(t *testing.T, d databases.Dialect, s *sample, rules string) {
		p := s.plan(t, d, rules)
		if p.Verdict != guard.Guard || strings.Contains(s.name, "huge") {
			return
		}
		v := valuesOf(p, rules)
		r := renderedOf(t, p, v)
		before, after := numbers(t, d, s.sql), numbers(t, d, r.SQL)
		if highest := slices.Max(append(before, 0)); p.Inputs != highest {
			t.Errorf("Inputs is %d, the statement's highest placeholder %d", p.Inputs, highest)
		}
		if v.Literal && len(r.Args) != 0 {
			t.Errorf("it has arguments: %v", r.Args)
		}
		all := p.Inputs + len(r.Args)
		used, added := make([]bool, all+1), make([]bool, all+1)
		for _, n := range after {
			if n > all {
				t.Fatalf("placeholder %d is without an argument in %s", n, r.SQL)
			}
			used[n] = true
		}
		seen, last := make(map[any]bool), 0
		for _, a := range r.Args {
			switch {
			case a.Number <= last || a.Number > all || !used[a.Number]:
				t.Errorf("argument %+v is without a placeholder, or out of order, in %s", a, r.SQL)
			case a.Again > p.Inputs, a.Again == 0 && (seen[a.Of] && says(d).Capabilities().Numbers.Is() || a.Of.Table >= len(v.Tables)),
				a.Again == 0 && a.Of.Field.IsOfToken() && a.Of.Token >= len(v.Tables[a.Of.Table].Tokens):
				t.Errorf("argument %+v is there twice, or for no value", a)
			}
			last, added[a.Number] = a.Number, true
			seen[a.Of] = seen[a.Of] || a.Again == 0
		}
		// The user's arguments keep their places among the guard's.
		var places []int
		for n := 1; n <= all; n++ {
			if !added[n] {
				places = append(places, n)
			}
		}
		for i, n := range before {
			before[i] = places[n-1]
		}
		n := 0
		for _, m := range after {
			if n < len(before) && m == before[n] {
				n++
			}
		}
		if n < len(before) {
			t.Errorf("placeholders were %v, are %v in %s", before, after, r.SQL)
		}
	})
}

// numbers returns the placeholders' numbers as the database gives them, which
// is in the order of the text.
func numbers(t *testing.T, d databases.Dialect, sql string) []int {
	var all []int
	highest, names := 0, make(map[string]int)
	for _, s := range tokenTexts(t, d, sql) {
		if d == databases.MySQL && s != "?" { // in MySQL @a is a variable
			continue
		}
		if len(s) == 0 || !strings.ContainsRune("?:@$#", rune(s[0])) || d == databases.Postgres && (len(s) == 1 || s[0] != '$' || !lex.IsDigit(s[1])) {
			continue
		}
		n, err := strconv.Atoi(s[1:])
		switch {
		case err == nil && (s[0] == '?' || d == databases.Postgres):
		case s == "?":
			n = highest + 1
		case names[s] > 0:
			n = names[s]
		default:
			n = highest + 1
			names[s] = n
		}
		highest = max(highest, n)
		all = append(all, n)
	}
	return all
}

// TestPassesUnread checks that the plan of a statement that passes has no data of the statement.
func TestPassesUnread(t *testing.T) {
	eachSample(t, func(t *testing.T, d databases.Dialect, s *sample, rules string) {
		if p := s.plan(t, d, rules); p.Verdict == guard.Pass && p != render.Pass {
			t.Errorf("got %+v", p)
		}
	})
}
