package guarantees_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// One call of the base driver may take several round trips on the network. So this test counts round trips in a proxy.
func TestG6OneRoundTripOnTheNetwork(t *testing.T) {
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				if !b.Networked() {
					t.Skip("it has no network")
				}
				sh := harness.Setting{Base: b}.Shop(t)
				p := harness.NewProxy(t, sh.Source)
				db, plain := b.Fenced(t, p.DSN, harness.Books(fence.Rule)), b.Raw(t, p.DSN)
				for _, f := range b.Forms() {
					for _, w := range harness.RowWrites {
						// pgx prepares the statement in the first executions, so the third is counted.
						var want int
						for range 3 {
							sh.Reset(t, 9)
							want = p.Trips(func() { _, _ = f.Run(t.Context(), plain, w) })
						}
						for range 3 {
							sh.Reset(t, 9)
							if n, err := f.Run(harness.Holding(t, 9), db, w); n != b.Updated(w) || err != nil {
								t.Fatalf("%s by %s: %d rows, %v", w.Name, f.Name, n, err)
							}
						}
						var err error
						sh.Reset(t, 9)
						if got := p.Trips(func() { _, err = f.Run(harness.Holding(t, 9), db, w) }); got != want || err != nil {
							t.Errorf("%s by %s: %d round trips, %v; plain: %d", w.Name, f.Name, got, err, want)
						}
						sh.Reset(t, 9)
						got := p.Trips(func() { _, err = f.Run(harness.Holding(t, 8), db, w) })
						harness.WantStale(t, err, 8, 9)
						if got > want {
							t.Errorf("refusal of %s by %s: %d round trips; plain: %d", w.Name, f.Name, got, want)
						}
					}
				}
			})
		})
	}
}
