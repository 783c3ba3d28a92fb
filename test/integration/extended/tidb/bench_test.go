package tidb_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// BenchmarkWrites measures an UPDATE by key outside of a transaction, plain, with RowFence and with Ledger, in turns.
// The metrics are the median times of one, and the ratios to the plain one.
func BenchmarkWrites(b *testing.B) {
	dsn, plain := setup(b)
	store := harness.NewStore(b, open(b, dsn))
	token, err := store.Issue(context.Background(), "books")
	if err != nil {
		b.Fatal(err)
	}
	exec(b, plain, "REPLACE INTO books (id, isbn, price) VALUES (1, 'a', 1)")
	ctx := sqlfence.WithFence(context.Background(), token)
	ways := []struct {
		name string
		db   *sql.DB
		took []time.Duration
	}{{name: "plain", db: plain}, {name: "RowFence", db: fence(b, dsn, sqlfence.RowFence("fence_token"))},
		{name: "Ledger", db: fence(b, dsn, sqlfence.Ledger())}}
	for i := 0; b.Loop(); i++ {
		for j := range ways {
			w := &ways[j]
			began := time.Now()
			exec(b, withContext{w.db, ctx}, "UPDATE books SET price = ? WHERE id = 1", i)
			w.took = append(w.took, time.Since(began))
		}
	}
	median := func(took []time.Duration) float64 {
		slices.Sort(took)
		return took[len(took)/2].Seconds() * 1e6
	}
	base := median(ways[0].took)
	for _, w := range ways {
		b.ReportMetric(median(w.took), w.name+"-µs")
		b.ReportMetric(median(w.took)/base, w.name+"/plain")
	}
}
