package guarantees_test

import (
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A guarded statement takes the same calls of the base driver as the plain statement, even to distinguish "stale" from
// "no such row".
func TestG6OneRoundTrip(t *testing.T) {
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				sh := harness.Setting{Base: b}.Shop(t)
				db, count := b.Counted(t, sh.Source, harness.Books(fence.Rule))
				plain, plainCount := b.Counted(t, sh.Source)
				sh.Reset(t, 9)
				for _, w := range harness.RowWrites { // each connection's own queries are sent here
					if _, err := db.ExecContext(harness.Holding(t, 9), w.As(b.Dialect).Query, w.Args...); err != nil {
						t.Fatal(err)
					}
				}
				for _, f := range b.Forms() {
					for _, w := range harness.RowWrites {
						w = w.As(b.Dialect)
						sh.Reset(t, 9)
						plainCount.Reset()
						if n, err := f.Run(t.Context(), plain, w); n != b.Updated(w) || err != nil {
							t.Fatalf("plain: %d rows, %v", n, err)
						}
						want := plainCount.Kinds()
						check := func(outcome string) {
							t.Helper()
							got := count.Kinds()
							kept := b.Statements > 0 && len(got) > 0 && len(got) < len(want) && slices.Equal(got, want[len(want)-len(got):])
							if !kept && !slices.Equal(got, want) {
								t.Errorf("%s of %s by %s: calls %q, want %q", outcome, w.Name, f.Name, got, want)
							}
						}

						sh.Reset(t, 9)
						count.Reset()
						_, err := f.Run(harness.Holding(t, 8), db, w)
						harness.WantStale(t, err, 8, 9)
						check("refusal")

						count.Reset()
						if n, err := f.Run(harness.Holding(t, 9), db, w); n != b.Updated(w) || err != nil {
							t.Errorf("%s by %s: %d rows, %v", w.Name, f.Name, n, err)
						}
						check("success")

						if w.Name == "upsert" {
							continue // an upsert always finds its row, or adds it
						}
						sh.Exec(t, "DELETE FROM books")
						count.Reset()
						if n, err := f.Run(harness.Holding(t, 9), db, w); n != 0 || err != nil {
							t.Errorf("%s of no row by %s: %d rows, %v", w.Name, f.Name, n, err)
						}
						check("no such row")
					}
				}
			})
		})
	}
}

// Under a row fence a statement that reaches no row isn't refused, although its token is older than other rows' stored
// tokens.
func TestG6TellsStaleFromNoSuchRow(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.RowFence("fence_token"))
		for _, f := range s.Forms() {
			for _, w := range harness.RowWrites[:2] {
				sh.Reset(t, 9)
				absent := w
				absent.Args = append(slices.Clone(w.Args[:len(w.Args)-1]), 99)
				if n, err := f.Run(harness.Holding(t, 1), sh.DB, absent); n != 0 || err != nil {
					t.Errorf("%s of no row by %s: %d rows, %v", w.Name, f.Name, n, err)
				}
				_, err := f.Run(harness.Holding(t, 1), sh.DB, w)
				harness.WantStale(t, err, 1, 9)
			}
		}
	})
}
