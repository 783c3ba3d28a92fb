package sealed_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// BenchmarkTransaction measures a bare driver's transactions that set a token, on a sealed table, compared with an
// unsealed table and with transactions without a token: in turns, as ratios of the medians. No commit waits for the
// disk.
func BenchmarkTransaction(b *testing.B) {
	const update, many = "UPDATE books SET price = price + 1 WHERE id = 5001", "UPDATE books SET price = price + 1 WHERE id >= 5000 AND id < 6000"
	for name, rules := range map[string][]sqlfence.Rule{"row": nil, "ledger": {sqlfence.Ledger()}} {
		open, sealed := newUnsealed(b, bases[1], rules...), newLab(b, bases[1], fromTransaction(rules...)...)
		fill(b, open)
		fill(b, sealed)
		for _, w := range []struct {
			name string
			n    int
			text []string
		}{{"a row", 300, []string{update}}, {"ten statements", 60, slices.Repeat([]string{update}, 10)}, {"1,000 rows", 3, []string{many}}} {
			b.Run(name+"/"+w.name, func(b *testing.B) {
				ways := []struct {
					l   *lab
					set []string
				}{{open, nil}, {open, []string{local}}, {sealed, []string{local}}, {sealed, []string{withID}}}
				took := make([][]float64, len(ways))
				for range max(b.N, 11) {
					for i, way := range ways {
						took[i] = append(took[i], transactionsOf(b, way.l.plain, w.n, append(way.set, w.text...)))
					}
				}
				for i := range took {
					slices.Sort(took[i])
				}
				median := func(i int) float64 { return took[i][len(took[i])/2] }
				b.ReportMetric(median(0)/float64(w.n)/1000, "µs/plain")
				b.ReportMetric(median(1)/median(0), "set,unsealed")
				b.ReportMetric(median(2)/median(0), "set,sealed")
				b.ReportMetric(median(3)/median(0), "number,sealed")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// transactionsOf returns the duration of n transactions.
func transactionsOf(b *testing.B, db *sql.DB, n int, statements []string) float64 {
	conn, err := db.Conn(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	exec := func(query string) {
		if _, err := conn.ExecContext(context.Background(), query); err != nil {
			b.Fatalf("%s: %v", query, err)
		}
	}
	exec("SET synchronous_commit = off")
	began := time.Now()
	for range n {
		exec("BEGIN")
		for _, query := range statements {
			exec(query)
		}
		exec("COMMIT")
	}
	return float64(time.Since(began))
}
