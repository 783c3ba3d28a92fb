package rewrite

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/test/random"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// A mutator composes new texts of the tokens of a dialect's golden statements. Changes of single bytes hardly ever
// reach such texts: a clause is empty, repeated, or stands after the clause that must follow it.
type mutator struct {
	*rand.Rand
	samples [][]string // each statement's tokens, with the blanks that follow
	tokens  []string   // all different tokens of the samples
}

func newMutator(t testing.TB, d databases.Dialect, seed uint64) *mutator {
	t.Helper()
	m := &mutator{Rand: rand.New(rand.NewPCG(seed, uint64(d)))}
	seen := map[string]bool{}
	for _, s := range corpus(t, d) {
		if len(s.sql) > 4<<10 {
			continue
		}
		pieces := []string{s.sql}
		if toks, err := scan(d, s.sql); err == nil {
			pieces = pieces[:0]
			for i := range toks[:len(toks)-1] {
				pieces = append(pieces, s.sql[toks[i].Start:toks[i+1].Start])
			}
		}
		m.samples = append(m.samples, pieces)
		for _, piece := range pieces {
			if !seen[piece] {
				seen[piece] = true
				m.tokens = append(m.tokens, piece)
			}
		}
	}
	return m
}

func (m *mutator) sample() []string { return m.samples[m.IntN(len(m.samples))] }

// cut returns two places of a text, the first before the second.
func (m *mutator) cut(text []string) (lo, hi int) {
	lo, hi = m.IntN(len(text)+1), m.IntN(len(text)+1)
	if m.IntN(2) == 0 {
		hi = lo + 1 + m.IntN(3)
	}
	return min(lo, hi), min(max(lo, hi), len(text))
}

// text appends a new text to room.
func (m *mutator) text(room []string) (string, []string) {
	text := append(room[:0], m.sample()...)
	for range 1 + m.IntN(4) {
		lo, hi := m.cut(text)
		if len(text) > 1000 {
			text = text[:1000]
			continue
		}
		switch m.IntN(9) {
		case 0, 1:
			text = append(text[:lo], text[hi:]...)
		case 2:
			text = append(text[:hi], append(append([]string(nil), text[lo:hi]...), text[hi:]...)...)
		case 3:
			if i, j := m.IntN(len(text)+1), m.IntN(len(text)+1); i < len(text) && j < len(text) {
				text[i], text[j] = text[j], text[i]
			}
		case 4:
			if lo < len(text) {
				text[lo] = m.tokens[m.IntN(len(m.tokens))]
			}
		case 5:
			text = append(text[:lo], append([]string{m.tokens[m.IntN(len(m.tokens))], " "}, text[lo:]...)...)
		case 6: // a part of another sample
			other := m.sample()
			from, to := m.cut(other)
			text = append(text[:lo], append(append([]string{" "}, other[from:to]...), text[hi:]...)...)
		case 7:
			text = append(text[:lo], append(append(append([]string{"("}, text[lo:hi]...), ")"), text[hi:]...)...)
		case 8: // bytes
			if lo < len(text) && text[lo] != "" {
				piece := []byte(text[lo])
				piece[m.IntN(len(piece))] = hazards[m.IntN(len(hazards))]
				text[lo] = string(piece)
			}
		}
	}
	return strings.Join(text, ""), text
}

// hazards are bytes that may change how a text is split into tokens.
const hazards = "'\"`;()$?:@.,*\\/-#\x00\xff 0eEnNxXqb[]{}=\n"

// A rewriterOf is a rewriter with the name of its rules.
type rewriterOf struct {
	*Rewriter
	named string
}

func allRewriters(t testing.TB, d databases.Dialect) (all []rewriterOf) {
	t.Helper()
	for _, rules := range rulesetsOf(t, d) {
		r := newRewriter(t, d, rules)
		all = append(all, rewriterOf{r, rules})
		if with := r.WithLedgerFunction("public"); with != r {
			all = append(all, rewriterOf{with, rules})
		}
	}
	return all
}

// planned plans and renders a text in each way, and returns a description of a fault.
func (r rewriterOf) planned(d databases.Dialect, sql string, n int) (wrong string, guards bool) {
	defer func() {
		if p := recover(); p != nil {
			wrong = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if n%32 == 0 {
		lang.Verb(d, sql)
		lang.Fingerprint(d, sql)
		lang.InTransaction(d, sql, n%64 == 0)
		r.rules.Finds(sql)
	}
	p := r.rules.Read(sql, variantOf(r.named))
	switch p.Verdict {
	case guard.Refuse:
		if f := p.Refusal; f.Reason == "" || f.Offset < 0 || f.Offset > len(sql) || f.Table < -1 || f.Table > 1+len(otherTables(r.named)) {
			return fmt.Sprintf("refused as %+v", f), false
		}
	case guard.Guard:
		if _, _, err := p.Default(); err != nil && err != render.ErrNoParams && err != render.ErrAmbiguous {
			return err.Error(), true
		}
		v := valuesOf(p, r.named)
		v.Literal = v.Literal || n%4 == 0
		if _, err := insertions(p, v); err != nil && err != render.ErrAmbiguous {
			return err.Error(), true
		}
		p.Inlines()
		return "", true
	}
	return "", false
}

// TestMutatedStatements plans texts that are made of the golden statements' tokens: each gets a verdict, and a guard
// only inserts. SQLFENCE_SEED and SQLFENCE_ROUNDS are which and how many of each dialect.
func TestMutatedStatements(t *testing.T) {
	oneGoroutine(t)
	seed, rounds := random.Seed(t), random.Rounds(t, 300_000)
	for _, d := range guardedDialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			m, rewriters := newMutator(t, d, seed), allRewriters(t, d)
			var room []string
			var sql string
			guarded, failures := 0, map[string]bool{}
			for n := range rounds {
				sql, room = m.text(room)
				r := rewriters[m.IntN(len(rewriters))]
				wrong, guards := r.planned(d, sql, n)
				if guards {
					guarded++
				}
				if kind := kindOf(wrong); kind != "" && !failures[kind] {
					failures[kind] = true
					t.Errorf("%s, %q: %s", r.named, sql, wrong)
				}
			}
			t.Logf("seed %d: %d texts, of which %d are guarded", seed, rounds, guarded)
			if guarded < rounds/20 {
				t.Error("too few are guarded")
			}
		})
	}
}

// kindOf shortens a failure's text to the part that differs among failures.
func kindOf(wrong string) string {
	_, at, isPanic := strings.Cut(wrong, "panic.go")
	if !isPanic {
		return wrong[:min(len(wrong), 30)]
	}
	lines := strings.SplitN(at, "\n", 4)
	return lines[min(2, len(lines)-1)]
}

// FuzzLex shows that the tokens of any text are in order, and within it.
func FuzzLex(f *testing.F) {
	oneGoroutine(f)
	addCorpus(f, everySample)
	f.Fuzz(func(t *testing.T, sql string) {
		for _, d := range guardedDialects(t) {
			toks, err := scan(d, sql)
			last := int32(0)
			for _, tok := range toks {
				if err == nil && (tok.Start < last || tok.End < tok.Start || int(tok.End) > len(sql) || tok.End == tok.Start && tok.Kind != lex.End) {
					t.Fatalf("%v: token %+v behind %d", d, tok, last)
				}
				last = tok.End
			}
		}
	})
}
