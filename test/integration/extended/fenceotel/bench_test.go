package fenceotel_test

import (
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/XSAM/otelsql"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// BenchmarkBesideOtelsql updates a row through a fenced database over otelsql. It alternates slices of 20 ms with and
// without fenceotel's telemetry, and reports the ratio of their medians.
func BenchmarkBesideOtelsql(b *testing.B) {
	for _, base := range harness.Bases {
		b.Run(base.Name, func(b *testing.B) {
			telemetry, _ := newTelemetry(b)
			sh := harness.NewShop(b, base, sqlfence.RowFence("fence_token"))
			sh.Reset(b, 1)
			spans := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(sdktrace.NewBatchSpanProcessor(tracetest.NewNoopExporter())))
			traced, err := otelsql.Register(base.DriverName, otelsql.WithTracerProvider(spans))
			if err != nil {
				b.Fatal(err)
			}
			open := func(options ...sqlfence.Option) *sql.DB {
				db, err := sqlfence.Open(traced, sh.Source, append(options, sqlfence.WithDialect(base.Dialect),
					harness.Books(sqlfence.RowFence("fence_token")))...)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = db.Close() })
				return db
			}
			dbs := []*sql.DB{open(), open(telemetry.Writes())}
			ctx := harness.Holding(b, 1)
			var ratios []float64
			for b.Loop() {
				var per [2]float64
				for i, db := range dbs {
					n, begun := 0, time.Now()
					for ; time.Since(begun) < 20*time.Millisecond; n++ {
						if _, err := db.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1"); err != nil {
							b.Fatal(err)
						}
					}
					per[i] = time.Since(begun).Seconds() / float64(n)
				}
				ratios = append(ratios, per[1]/per[0])
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "ratio")
		})
	}
}
