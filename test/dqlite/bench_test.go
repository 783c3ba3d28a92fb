package dqlite_test

import (
	"database/sql"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// BenchmarkWrites measures an UPDATE by key outside of a transaction on three nodes, plain, with RowFence and with
// Ledger, in rotating turns: by one caller, and by 16 callers, of whom dqlite admits one at a time. The metrics are the median
// time of one caller's write, the writes per second of 16 callers, and the ratios to the plain ones.
func BenchmarkWrites(b *testing.B) {
	const callers = 16
	connector := nodes(b).connector(b)
	plain := bare(b, connector)
	mustExecAll(b, plain, schema)
	token, err := storeOf(b, plain).Issue(b.Context(), "books")
	if err != nil {
		b.Fatal(err)
	}
	ctx := sqlfence.WithFence(b.Context(), token)
	ways := []struct {
		name    string
		db      *sql.DB
		took    []time.Duration
		writes  atomic.Int64
		elapsed time.Duration
	}{
		{name: "plain", db: plain},
		{name: "RowFence", db: fence(b, connector, sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))},
		{name: "Ledger", db: fence(b, connector, sqlfence.WithTable("books", sqlfence.Ledger()))},
	}
	write := func(db *sql.DB, price int64) {
		if _, err := db.ExecContext(ctx, "UPDATE books SET price = ? WHERE id = 1", price); err != nil {
			b.Error(err)
		}
	}
	many := func(db *sql.DB, until func(n int64) bool) (writes int64) {
		var all sync.WaitGroup
		var count atomic.Int64
		for range callers {
			all.Go(func() {
				for n := int64(0); !until(n); n++ {
					write(db, n)
					count.Add(1)
				}
			})
		}
		all.Wait()
		return count.Load()
	}
	for i := range ways { // opens and probes the connections
		ways[i].db.SetMaxIdleConns(callers)
		many(ways[i].db, func(n int64) bool { return n > 0 })
	}
	for i := 0; b.Loop(); i++ {
		for j := range ways {
			w := &ways[(i+j)%len(ways)]
			began := time.Now()
			write(w.db, int64(i))
			w.took = append(w.took, time.Since(began))
		}
	}
	b.StopTimer()
	for round := range 21 {
		for j := range ways {
			w := &ways[(round+j)%len(ways)]
			began := time.Now()
			w.writes.Add(many(w.db, func(int64) bool { return time.Since(began) > 500*time.Millisecond }))
			w.elapsed += time.Since(began)
		}
	}
	var latency, throughput float64
	for i := range ways {
		w := &ways[i]
		slices.Sort(w.took)
		median := w.took[len(w.took)/2].Seconds() * 1e6
		perSecond := float64(w.writes.Load()) / w.elapsed.Seconds()
		if i == 0 {
			latency, throughput = median, perSecond
		}
		b.ReportMetric(median, w.name+"-µs")
		b.ReportMetric(median/latency, w.name+"/plain-µs")
		b.ReportMetric(perSecond, w.name+"-writes/s")
		b.ReportMetric(perSecond/throughput, w.name+"/plain-writes/s")
	}
}
