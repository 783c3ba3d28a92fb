package vitess_test

import (
	"database/sql"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// BenchmarkWrites measures an UPDATE by key outside of a transaction, in the keyspace of two shards, plain and with
// RowFence, in rotating turns: by one caller, and by 16 callers who write rows of their own. The metrics are the median time of
// one caller's write, the writes per second of 16 callers, and the ratios to the plain ones.
func BenchmarkWrites(b *testing.B) {
	const callers = 16
	dsn, plain := setup(b, "sharded")
	for id := range callers {
		exec(b, plain, "INSERT INTO books (id, isbn, price) VALUES (?, 'a', 1)", id+1)
	}
	ctx := holding(5)
	ways := []struct {
		name    string
		db      *sql.DB
		took    []time.Duration
		writes  atomic.Int64
		elapsed time.Duration
	}{{name: "plain", db: plain}, {name: "RowFence", db: fence(b, dsn, sqlfence.RowFence("fence_token"))}}
	write := func(db *sql.DB, id int, price int64) {
		if _, err := db.ExecContext(ctx, "UPDATE books SET price = ? WHERE id = ?", price, id); err != nil {
			b.Error(err)
		}
	}
	for i := range ways {
		ways[i].db.SetMaxIdleConns(callers)
		var all sync.WaitGroup
		for id := range callers {
			all.Go(func() { write(ways[i].db, id+1, 2) }) // opens and probes the connections
		}
		all.Wait()
	}
	for i := 0; b.Loop(); i++ {
		for j := range ways {
			w := &ways[(i+j)%len(ways)]
			began := time.Now()
			write(w.db, 1, int64(i)+3)
			w.took = append(w.took, time.Since(began))
		}
	}
	b.StopTimer()
	for round := range 20 {
		for j := range ways {
			w := &ways[(round+j)%len(ways)]
			began := time.Now()
			var all sync.WaitGroup
			for id := range callers {
				all.Go(func() {
					for n := int64(0); time.Since(began) < 500*time.Millisecond; n++ {
						write(w.db, id+1, n)
						w.writes.Add(1)
					}
				})
			}
			all.Wait()
			w.elapsed += time.Since(began)
		}
	}
	median := func(took []time.Duration) float64 {
		slices.Sort(took)
		return took[len(took)/2].Seconds() * 1e6
	}
	latency, throughput := median(ways[0].took), float64(ways[0].writes.Load())/ways[0].elapsed.Seconds()
	for i := range ways {
		w := &ways[i]
		perSecond := float64(w.writes.Load()) / w.elapsed.Seconds()
		b.ReportMetric(median(w.took), w.name+"-µs")
		b.ReportMetric(perSecond, w.name+"-writes/s")
		if i > 0 {
			b.ReportMetric(median(w.took)/latency, w.name+"/plain-µs")
			b.ReportMetric(perSecond/throughput, w.name+"/plain-writes/s")
		}
	}
}
