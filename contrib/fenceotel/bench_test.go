package fenceotel

import (
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/sqlfence/sqlfence"
)

// BenchmarkGuarded reports a guarded statement.
func BenchmarkGuarded(b *testing.B) {
	tel, err := New(WithMeterProvider(sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader()))))
	if err != nil {
		b.Fatal(err)
	}
	e := sqlfence.Event{Kind: sqlfence.Guarded, Query: "UPDATE books SET price = 1 WHERE id = 42", Tables: []string{"books"},
		Tokens: []sqlfence.Token{{Name: "books", Value: 7}}, Dialect: sqlfence.Postgres, Duration: time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		tel.observeWrite(b.Context(), e)
	}
}
