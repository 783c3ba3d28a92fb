package tokens_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// BenchmarkIssueMany takes tokens of 10 names by one call, and by one call each.
func BenchmarkIssueMany(b *testing.B) {
	for _, base := range harness.Bases {
		dsn := base.DSN(b)
		store := setupStore(b, base.Raw(b, dsn))
		var names []string
		for i := range 10 {
			names = append(names, fmt.Sprint("accounts/", i))
		}
		issueMany(b, store, names...)
		b.Run(base.Name+"/IssueMany", func(b *testing.B) {
			for b.Loop() {
				if _, err := store.IssueMany(b.Context(), names...); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(base.Name+"/10 Issue", func(b *testing.B) {
			for b.Loop() {
				for _, name := range names {
					if _, err := store.Issue(b.Context(), name); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkRecordIssuers takes tokens in turns from a ledger with a record of issuers and from a ledger without a
// record. It reports the median time of each, and the median of the pairs' ratios.
//
//	go test ./promises/tokens -run '^$' -bench RecordIssuers -benchtime 2000x
func BenchmarkRecordIssuers(b *testing.B) {
	for _, base := range harness.Bases {
		b.Run(base.Name, func(b *testing.B) {
			plain, recorded := setupStore(b, base.Raw(b, base.DSN(b))), setupStore(b, base.Raw(b, base.DSN(b)))
			if err := recorded.RecordIssuers(b.Context()); err != nil {
				b.Fatal(err)
			}
			took := func(i int) (without, with, ratio float64) {
				stores, times := []int{i % 2, 1 - i%2}, [2]float64{}
				for _, which := range stores {
					start := time.Now()
					harness.IssueToken(b, []*tokens.Store{plain, recorded}[which], "books")
					times[which] = float64(time.Since(start).Nanoseconds()) / 1000
				}
				return times[0], times[1], times[1] / times[0]
			}
			for i := range 100 { // warm
				took(i)
			}
			var all [3][]float64
			for i := 0; b.Loop(); i++ {
				without, with, ratio := took(i)
				for j, x := range []float64{without, with, ratio} {
					all[j] = append(all[j], x)
				}
			}
			for j, unit := range []string{"us-without", "us-with", "ratio"} {
				slices.Sort(all[j])
				b.ReportMetric(all[j][len(all[j])/2], unit)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
