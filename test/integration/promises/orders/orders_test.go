package orders_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// atOnce is how many orders run concurrently, each on separate databases.
const atOnce = 6

// For every order of every scenario there is a sequence that explains it.
func TestOrders(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			all := d.plan(testing.Short())
			for _, m := range d.modes {
				t.Run(m.name, func(t *testing.T) {
					f := figure{database: d.name, mode: m.name, outcomes: make(map[outcome]int)}
					var run harness.Subtests
					d.runAll(t, m, all[m.name], &run, &f)
					t.Log(f)
					run.NeedAll(t)
					if !t.Failed() && !testing.Short() {
						recordRun(t, f)
					}
				})
			}
		})
	}
}

// runAll runs the orders of the scenarios in a mode, with a subtest for each ruleset.
func (d *database) runAll(t *testing.T, m mode, all map[string][]*scenario, run *harness.Subtests, f *figure) {
	want := 0
	for _, scenarios := range all {
		want += count(scenarios)
	}
	var places []*place
	for range min(atOnce, 1+want/500) {
		places = append(places, d.newPlace(t, m))
	}
	w := d.newWatch(t, places[0])
	for _, r := range rulesets(d.Dialect) {
		scenarios := all[r.String()]
		if len(scenarios) == 0 {
			continue
		}
		run.Run(t, r.String(), func(t *testing.T) {
			var labs []*lab
			for _, p := range places[:min(len(places), 1+count(scenarios)/20)] {
				labs = append(labs, p.newLab(t, r, 3, r.options()))
			}
			runOrders(t, labs, w, scenarios, f)
			for _, l := range labs {
				if err := l.seal(t.Context(), false); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A job is an order of a scenario to run.
type job struct {
	sc    *scenario
	order []int
}

// runOrders runs all orders of the scenarios in the labs, and adds up the results.
func runOrders(t *testing.T, labs []*lab, w *watch, scenarios []*scenario, f *figure) {
	began := time.Now()
	own := figure{outcomes: make(map[outcome]int)}
	var mu sync.Mutex
	jobs := make(chan job)
	var working sync.WaitGroup
	for _, l := range labs {
		working.Go(func() {
			for j := range jobs {
				m, err := l.judge(t.Context(), w, j)
				if err != nil {
					t.Errorf("%v, order %v: %v\n%s", j.sc, j.order, err, describe(m))
				}
				mu.Lock()
				own.add(m)
				mu.Unlock()
			}
		})
	}
	for _, sc := range scenarios {
		for _, order := range sc.orders() {
			if t.Failed() {
				break
			}
			jobs <- job{sc, order}
		}
	}
	close(jobs)
	working.Wait()
	own.took = time.Since(began)
	if own.refused() == 0 && !t.Failed() {
		t.Errorf("no write was refused: %v", own)
	}
	f.merge(own)
}

// judge runs an order, and searches for an explanation.
func (l *lab) judge(ctx context.Context, w *watch, j job) (*machine, error) {
	begin, err := l.reset(ctx, j.sc)
	if err != nil {
		return nil, fmt.Errorf("to begin with: %w", err)
	}
	m, err := l.run(ctx, w, j.sc, j.order)
	if err != nil {
		return m, err
	}
	left, err := l.left(ctx)
	if err != nil {
		return m, err
	}
	if err := l.causes(j.sc, m.history); err != nil {
		return m, err
	}
	return m, explain(begin, units(m.history, l.snapshots), left)
}
