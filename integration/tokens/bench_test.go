package tokens_test

import (
	"fmt"
	"testing"

	"github.com/sqlfence/sqlfence/integration/harness"
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
