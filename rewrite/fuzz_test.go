package rewrite

import (
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Seeds are the statements of the golden files, which are grouped by hazard.
func addCorpus(f *testing.F) {
	for _, d := range guardedDialects(f) {
		for _, s := range corpus(f, d) {
			f.Add(s.sql)
		}
	}
	for _, s := range crashers {
		f.Add(s)
	}
}

// crashers are what fuzzing has found before.
var crashers = []string{}

// FuzzPlan shows that any text gets a verdict, that a guard only inserts, and
// that a comment behind the text changes nothing.
func FuzzPlan(f *testing.F) {
	oneGoroutine(f)
	addCorpus(f)
	f.Fuzz(func(t *testing.T, sql string) {
		for _, d := range guardedDialects(t) {
			for _, rules := range rulesetsOf(t, d) {
				s, longer := sample{sql: sql}, sample{sql: sql + "\n-- c"}
				p, q := s.plan(t, d, rules), longer.plan(t, d, rules)
				if isVersioned(rules) && p.Verdict == Guard && q.Verdict == Refuse && strings.Contains(sql, ";") {
					continue // nothing may stand behind the semicolon
				}
				if p.Verdict != q.Verdict {
					t.Fatalf("%v, %s: got %v, with a comment behind %v", d, rules, p.Verdict, q.Verdict)
				}
				switch p.Verdict {
				case Refuse:
					if r := p.Refusal; r.Reason == "" || r.Offset < 0 || r.Offset > len(sql) || r.Table < -1 || r.Table > len(otherTables(rules)) {
						t.Fatalf("%v, %s: got %+v", d, rules, r)
					}
				case Guard:
					checkGuard(t, d, rules, p, q)
				}
			}
		}
	})
}

// checkGuard checks a plan to guard, and that of the text with a comment behind.
func checkGuard(t *testing.T, d Dialect, rules string, p, q *Plan) {
	t.Helper()
	v := p.values(rules)
	r, err := insertions(p, v)
	if err == errAmbiguous {
		return
	}
	if err != nil {
		t.Fatalf("%v, %s: %v", d, rules, err)
	}
	if longer := q.rendered(t, q.values(rules)); longer.SQL != r.SQL+"\n-- c" {
		t.Fatalf("%v, %s: got %q, with a comment behind %q", d, rules, r.SQL, longer.SQL)
	}
	if !strings.Contains(r.SQL, "fence_token") && !strings.Contains(r.SQL, "fencing_tokens") && !v.Observe && !mayInsertNothing(p, rules) && rules != "keyledger" {
		t.Fatalf("%v, %s: without a guard: %q", d, rules, r.SQL)
	}
	scs := lex.SCSUnknown
	if p.source.needsSCSOn {
		scs = lex.SCSOn
	}
	if _, err := lex.Scan(p.source.dialect.grammar().Lex, r.SQL, scs, nil); err != nil {
		t.Fatalf("%v, %s: at %d of %q: %s", d, rules, err.Offset, r.SQL, err.Reason)
	}
}
