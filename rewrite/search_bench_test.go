package rewrite

import (
	"fmt"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// manyTables returns n tables with names like an application's. The texts below contain parts of the names, but no
// whole name.
func manyTables(n int) []Table {
	kinds := []string{"order_items", "customer", "invoice_lines", "product_prices_log", "shipment_status_events", "users_by_region"}
	tables := make([]Table, n)
	for i := range tables {
		tables[i] = Table{Name: fmt.Sprintf("%s_%05d", kinds[i%len(kinds)], i/len(kinds)), FenceColumn: "fence_token"}
	}
	return tables
}

var numbersOfTables = []int{1, 100, 10_000}

// shortRead is a SELECT of 150 bytes, longRead4k one of 4 KB.
const shortRead = `SELECT c.id, c.name, o.total, o.created_at FROM customers c JOIN orders o ON o.customer_id = c.id WHERE o.status = $1 AND c.region = $2 ORDER BY o.id`

var longRead4k = func() string {
	var b strings.Builder
	b.WriteString("SELECT id")
	for i := 0; b.Len() < 4000; i++ {
		fmt.Fprintf(&b, ",\n       coalesce(t%d.customer_name, 'n/a') AS \"Customer %d\", t%d.order_total * 1.%02d", i%7, i, i%7, i%100)
	}
	return b.String() + "\nFROM customers t0 JOIN invoice_lines_archive t1 ON t0.id = t1.id WHERE t0.id > $1"
}()

// passedReads name none of the tables.
var passedReads = map[string]string{
	"short":   shortRead,
	"long":    longRead4k,
	"accents": strings.ReplaceAll(shortRead, "$1", "'größer als früher, naïve façade'"),
	"uuid":    strings.ReplaceAll(shortRead, "$1", "'550e8400-e29b-41d4-a716-446655440000'"),
}

// BenchmarkPass searches texts that name none of the tables.
func BenchmarkPass(b *testing.B) {
	for name, sql := range passedReads {
		for _, n := range numbersOfTables {
			b.Run(fmt.Sprintf("%s/tables=%d", name, n), func(b *testing.B) {
				r, err := New(databases.Postgres, manyTables(n))
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(sql)))
				b.ReportAllocs()
				for b.Loop() {
					if r.Plan(sql).Verdict != guard.Pass {
						b.Fatal("not passed")
					}
				}
			})
		}
	}
}

// BenchmarkNew makes a rewriter.
func BenchmarkNew(b *testing.B) {
	for _, n := range numbersOfTables {
		b.Run(fmt.Sprintf("tables=%d", n), func(b *testing.B) {
			tables := manyTables(n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := New(databases.Postgres, tables); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPlanAmong plans statements on one of many tables, and code that names no table.
func BenchmarkPlanAmong(b *testing.B) {
	for name, sql := range map[string]string{
		"update": "UPDATE customer_00000 SET price=$1 WHERE id=$2",
		"code":   "DO $$ BEGIN " + strings.Repeat("PERFORM refresh_customer_totals(orders.id); ", 20) + "END $$",
	} {
		for _, n := range numbersOfTables {
			b.Run(fmt.Sprintf("%s/tables=%d", name, n), func(b *testing.B) {
				r, err := New(databases.Postgres, append(manyTables(max(0, n-1)), Table{Name: "customer_00000x", Ledger: true}))
				if err != nil {
					b.Fatal(err)
				}
				sql := strings.Replace(sql, "00000 ", "00000x ", 1)
				b.ReportAllocs()
				for b.Loop() {
					r.rules.Read(sql, 0)
				}
			})
		}
	}
}
