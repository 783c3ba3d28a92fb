package rewrite

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// TestReuseKeepsNothing makes and renders plans of both dialects and all rules in several goroutines at a time. The
// goroutines reuse each other's planners, writers and texts, even of refused statements. Each plan must equal the plan
// that is made alone, and must not change.
func TestReuseKeepsNothing(t *testing.T) {
	oneGoroutine(t)
	type asked struct {
		d     databases.Dialect
		rules string
		s     *sample
	}
	show := func(p *Plan, rules string) string {
		shown := fmt.Sprint(p.Verdict, p.Refusal, p.Tables, p.Targets, p.Inputs)
		if p.Verdict != guard.Guard {
			return shown
		}
		v := valuesOf(p, rules)
		for _, literal := range []bool{false, true} {
			v.Literal = literal
			shown += fmt.Sprintln(p.Render(v))
		}
		return shown
	}
	var all []asked
	var want []string
	for _, d := range []databases.Dialect{databases.Postgres, databases.SQLite} {
		for _, s := range corpus(t, d) {
			for _, rules := range rulesetsOf(t, d) {
				if rand.IntN(8) > 0 {
					continue // the next round takes other samples
				}
				a := asked{d, rules, &s}
				p := s.plan(t, d, rules)
				if p.Verdict == guard.Guard {
					if _, _, err := knowing(p, valuesOf(p, rules)).Render(valuesOf(p, rules)); err != nil {
						continue // the rules' values don't fit the plan
					}
				}
				all, want = append(all, a), append(want, show(p, rules))
			}
		}
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			plans := make(map[int]*Plan)
			for range 1000 {
				i := rand.IntN(len(all))
				plans[i] = all[i].s.plan(t, all[i].d, all[i].rules)
			}
			for i, p := range plans {
				if got := show(p, all[i].rules); got != want[i] {
					t.Errorf("%v, %s: %s\nis %s\nalone %s", all[i].d, all[i].rules, all[i].s.sql, got, want[i])
				}
			}
		})
	}
	wg.Wait()
}
