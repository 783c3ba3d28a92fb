package parsers

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/rewrite"
)

// statements returns how many statements to generate. Under the race detector the parsers are ten times slower.
func statements(t testing.TB, usual int) int {
	if raceDetector {
		usual /= 4
	}
	return setting(t, "SQLFENCE_STATEMENTS", usual)
}

// setting reads a number from the environment.
func setting(t testing.TB, name string, usual int) int {
	s := os.Getenv(name)
	if s == "" {
		return usual
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func random(t testing.TB) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(setting(t, "SQLFENCE_SEED", 1)), 1))
}

// generated checks generated statements, each under one set of rules.
func generated(t *testing.T, c *checker, g grammar, usual int) {
	r := random(t)
	for i := range statements(t, usual) {
		c.check(text(g.write(r, "statement")), i%len(ruleSets), i/len(ruleSets)%2 == 1)
	}
	c.report(t, true)
}

// varied checks that the rewriter decides alike about every spelling of a statement.
func varied(t *testing.T, c *checker, g grammar, usual int, variants []variant) {
	r := random(t)
	for i := range statements(t, usual) {
		tokens := g.write(r, "statement")
		rules := i % len(ruleSets)
		if !c.check(text(tokens), rules, false) {
			continue
		}
		plain := c.rewriters[rules].Plan(text(tokens))
		for _, v := range variants {
			other := v.vary(r, tokens)
			if !c.check(other, rules, i%2 == 1) {
				continue // some names can't be quoted everywhere
			}
			if p := c.rewriters[rules].Plan(other); !sameVerdict(plain, p) {
				c.tally.verdicts.add("%s: %v %s, plain %v %s: %s", v.name, p.Verdict, p.Refusal.Reason, plain.Verdict, plain.Refusal.Reason, other)
			}
		}
	}
	c.report(t, true)
}

func sameVerdict(a, b *rewrite.Plan) bool {
	// A U&"" name in SQL that a statement executes may be any name, so the statement is refused.
	if strings.HasPrefix(b.Refusal.Reason, codeOfUser) {
		return true
	}
	return a.Verdict == b.Verdict && strings.EqualFold(a.Refusal.Reason, b.Refusal.Reason) &&
		len(a.Targets) == len(b.Targets) && len(a.Tables) == len(b.Tables)
}

// mutated shuffles tokens of statements, and checks the results that are still valid. No write may bypass its
// guard; needless refusals are permitted.
func mutated(t *testing.T, c *checker, g grammar, usual int) {
	r := random(t)
	for i := range statements(t, usual) {
		c.check(text(mutate(r, g.write(r, "statement"))), i%len(ruleSets), i%2 == 1)
	}
	c.report(t, false)
}

// hazardsOf checks statements under all sets of rules.
func hazardsOf(t *testing.T, c *checker, hazards []string) {
	for _, q := range hazards {
		c.all(q)
	}
	c.report(t, false)
}
