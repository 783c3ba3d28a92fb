package drivers

import (
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// A guarded statement costs what the plain one costs: the base driver sees the
// same calls, also when it tells "stale" from "no such row".
func TestG6OneRoundTrip(t *testing.T) {
	for _, fence := range fences {
		t.Run(fence.name, func(t *testing.T) {
			eachBase(t, func(t *testing.T, b base) {
				sh := setting{base: b}.shop(t)
				db, count := b.counted(t, sh.source, books(fence.rule))
				plain, plainCount := b.counted(t, sh.source)
				for _, f := range forms {
					for _, w := range rowWrites {
						w = w.as(b.dialect)
						sh.reset(t, 9)
						plainCount.reset()
						if n, err := f.run(t.Context(), plain, w); n != 1 || err != nil {
							t.Fatalf("plain: %d rows, %v", n, err)
						}
						want := plainCount.kinds()
						check := func(outcome string) {
							t.Helper()
							if got := count.kinds(); !slices.Equal(got, want) {
								t.Errorf("%s of %s by %s: calls %q, want %q", outcome, w.name, f.name, got, want)
							}
						}

						sh.reset(t, 9)
						count.reset()
						_, err := f.run(holding(t, 8), db, w)
						wantStale(t, err, 8, 9)
						check("refusal")

						count.reset()
						if n, err := f.run(holding(t, 9), db, w); n != 1 || err != nil {
							t.Errorf("%s by %s: %d rows, %v", w.name, f.name, n, err)
						}
						check("success")

						if w.name == "upsert" {
							continue // always finds its row
						}
						sh.exec(t, "DELETE FROM books")
						count.reset()
						if n, err := f.run(holding(t, 9), db, w); n != 0 || err != nil {
							t.Errorf("%s of no row by %s: %d rows, %v", w.name, f.name, n, err)
						}
						check("no such row")
					}
				}
			})
		})
	}
}

// On a row fence a token that is older than other rows' marks is no reason to
// refuse a statement that meets no row.
func TestG6TellsStaleFromNoSuchRow(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.RowFence("fence_token"))
		for _, f := range forms {
			for _, w := range rowWrites[:2] {
				sh.reset(t, 9)
				absent := w
				absent.args = append(slices.Clone(w.args[:len(w.args)-1]), 99)
				if n, err := f.run(holding(t, 1), sh.db, absent); n != 0 || err != nil {
					t.Errorf("%s of no row by %s: %d rows, %v", w.name, f.name, n, err)
				}
				_, err := f.run(holding(t, 1), sh.db, w)
				wantStale(t, err, 1, 9)
			}
		}
	})
}

// kinds returns the kinds of the recorded calls.
func (c *counter) kinds() []string {
	var kinds []string
	for _, call := range c.calls() {
		kinds = append(kinds, call.kind)
	}
	return kinds
}
