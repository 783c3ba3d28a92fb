package rewrite

import (
	"errors"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/test/random"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// addCorpus adds seeds: the statements of the golden files that choose returns, or all.
func addCorpus(f *testing.F, choose func([]sample) []sample) {
	for _, d := range guardedDialects(f) {
		for _, s := range choose(corpus(f, d)) {
			f.Add(s.sql)
		}
	}
	for _, s := range crashers {
		f.Add(s)
	}
}

// crashers are texts with which fuzzing has found faults.
var crashers = []string{}

// FuzzPlan checks that any text gets a verdict, that a guard only inserts text, and that a comment after the text
// changes nothing. It plans each seed with every ruleset, so a run with -short takes a sample of the seeds.
func FuzzPlan(f *testing.F) {
	oneGoroutine(f)
	addCorpus(f, random.Sample)
	f.Fuzz(func(t *testing.T, sql string) {
		for _, d := range guardedDialects(t) {
			for _, rules := range rulesetsOf(t, d) {
				s, longer := sample{sql: sql}, sample{sql: sql + "\n-- c"}
				p, q := s.plan(t, d, rules), longer.plan(t, d, rules)
				if isVersioned(rules) && p.Verdict == guard.Guard && q.Verdict == guard.Refuse && strings.Contains(sql, ";") {
					continue // under these rules no text may follow the semicolon
				}
				if p.Verdict != q.Verdict {
					t.Fatalf("%v, %s: got %v, with a comment behind %v", d, rules, p.Verdict, q.Verdict)
				}
				switch p.Verdict {
				case guard.Refuse:
					if r := p.Refusal; r.Reason == "" || r.Offset < 0 || r.Offset > len(sql) || r.Table < -1 || r.Table > len(otherTables(rules)) {
						t.Fatalf("%v, %s: got %+v", d, rules, r)
					}
				case guard.Guard:
					checkGuard(t, d, rules, p, q)
				}
			}
		}
	})
}

// checkGuard checks a plan to guard, and the plan of the same text with a comment after it.
func checkGuard(t *testing.T, d databases.Dialect, rules string, p, q *Plan) {
	t.Helper()
	v := valuesOf(p, rules)
	r, err := insertions(p, v)
	if err == render.ErrAmbiguous {
		return
	}
	if err != nil {
		t.Fatalf("%v, %s: %v", d, rules, err)
	}
	if longer := renderedOf(t, q, valuesOf(q, rules)); longer.SQL != renderedOf(t, p, v).SQL+"\n-- c" {
		t.Fatalf("%v, %s: got %q, with a comment behind %q", d, rules, r.SQL, longer.SQL)
	}
	if !strings.Contains(r.SQL, "fence_token") && !strings.Contains(r.SQL, "fencing_tokens") && !strings.Contains(r.SQL, guard.ClaimedTable) && !mayInsertNothing(p, rules) && rules != "keyledger" {
		t.Fatalf("%v, %s: without a guard: %q", d, rules, r.SQL)
	}
	escapes := lex.EscapesUnknown
	if p.Source.NeedsSCSOn {
		escapes = lex.EscapesNone
	}
	if _, err := lex.Scan(p.Source.Dialect.Grammar.Lex, r.SQL, escapes, nil); err != nil {
		t.Fatalf("%v, %s: at %d of %q: %s", d, rules, err.Offset, r.SQL, err.Reason)
	}
}

// FuzzReadMarker checks that any driver's error is read as a marker, or isn't taken for one.
func FuzzReadMarker(f *testing.F) {
	oneGoroutine(f)
	for _, s := range []string{"stale:0:9", "ledger:1:-9", "scope:0:O''Brien'", "locked:0:1,2,ada", "serial:2:x", "gone:0:", "stale:99999999999999999999:9", "", ":::", "unknown:0:" + sqltext.Padding} {
		f.Add("", s, "22P02")
		f.Add(`invalid input syntax for type bigint: "`, s+`"`, "22P02")
		f.Add("bad JSON path: '", s+"'", "")
	}
	f.Fuzz(func(t *testing.T, before, marker, state string) {
		for _, d := range guardedDialects(t) {
			r := reader(t, d)
			for _, err := range []error{errors.New(before + "sqlfence:nonce:" + marker), stateError{before + "sqlfence:nonce:" + marker, state}, errors.New(before + marker)} {
				m, ok := r.ReadMarker(err, nil)
				if ok && (m.Kind == "" || m.Kind == "claim" || m.Kind == "unproven" || m.Token < 0 || m.Table < 0) {
					t.Fatalf("%v: %q is %+v, %v", d, err, m, ok)
				}
				if ok && m.Kind != guard.NotInteger && !strings.Contains(err.Error(), "sqlfence:nonce:") {
					t.Fatalf("%v: %q has no nonce, and is %+v", d, err, m)
				}
			}
		}
	})
}

// A stateError is an error as PostgreSQL's drivers have it.
type stateError struct{ text, state string }

func (e stateError) Error() string    { return e.text }
func (e stateError) SQLState() string { return e.state }
