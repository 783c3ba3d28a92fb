package fenceotel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/tokens"
)

// newTelemetry returns a Telemetry, and a function that lists its metrics as "name{attributes} value". The value of a
// duration histogram is its count.
func newTelemetry(t *testing.T) (*Telemetry, func() []string) {
	t.Helper()
	reader := sdk.NewManualReader()
	tel, err := New(WithMeterProvider(sdk.NewMeterProvider(sdk.WithReader(reader))))
	if err != nil {
		t.Fatal(err)
	}
	return tel, func() (lines []string) {
		var rm metricdata.ResourceMetrics
		if err := reader.Collect(context.WithoutCancel(t.Context()), &rm); err != nil {
			t.Fatal(err)
		}
		line := func(name string, set attribute.Set, value any) {
			lines = append(lines, fmt.Sprintf("%s{%s} %v", name, set.Encoded(attribute.DefaultEncoder()), value))
		}
		for _, scope := range rm.ScopeMetrics {
			for _, m := range scope.Metrics {
				switch data := m.Data.(type) {
				case metricdata.Sum[int64]:
					for _, p := range data.DataPoints {
						line(m.Name, p.Attributes, p.Value)
					}
				case metricdata.Gauge[float64]:
					for _, p := range data.DataPoints {
						line(m.Name, p.Attributes, p.Value)
					}
				case metricdata.Histogram[int64]:
					for _, p := range data.DataPoints {
						line(m.Name, p.Attributes, p.Sum)
					}
				case metricdata.Histogram[float64]:
					for _, p := range data.DataPoints {
						line(m.Name, p.Attributes, p.Count)
					}
				default:
					t.Fatalf("%s is a %T", m.Name, data)
				}
			}
		}
		slices.Sort(lines)
		return lines
	}
}

func TestWrites(t *testing.T) {
	tel, collect := newTelemetry(t)
	token := sqlfence.Token{Name: "books/42", Value: sqlfence.MaxToken / 4}
	update := sqlfence.Event{Query: "UPDATE books SET price = 1 WHERE id = 42", Tables: []string{"books"},
		Tokens: []sqlfence.Token{token}, Dialect: sqlfence.Postgres}
	guarded, refused, bypassed, raw := update, update, update, sqlfence.Event{Kind: sqlfence.RawAccess, Dialect: sqlfence.SQLite}
	guarded.Kind, guarded.Duration = sqlfence.Guarded, time.Millisecond
	refused.Kind, refused.Err = sqlfence.Refused, fmt.Errorf("x: %w", sqlfence.ErrStale)
	bypassed.Kind, bypassed.Reason, bypassed.Tables = sqlfence.Bypassed, "migration", []string{"books", "pens"}
	other := refused
	other.Err = errors.New("another")
	kept := guarded
	kept.Dialect, kept.Cache = sqlfence.SQLite, sqlfence.CacheHit

	recorder := tracetest.NewSpanRecorder()
	ctx, span := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("").Start(t.Context(), "request")
	for _, e := range []sqlfence.Event{guarded, guarded, refused, bypassed, raw, other, kept} {
		tel.observeWrite(ctx, e)
	}
	span.End()

	want := []string{
		`sqlfence.token.used{sqlfence.resource=books} 0.25`,
		`sqlfence.write.duration{db.collection.name=books,db.operation.name=UPDATE,db.system.name=postgresql,sqlfence.outcome=guarded} 2`,
		`sqlfence.write.duration{db.collection.name=books,db.operation.name=UPDATE,db.system.name=sqlite,sqlfence.outcome=guarded,sqlfence.statement_cache=hit} 1`,
		`sqlfence.writes{db.collection.name=books,db.operation.name=UPDATE,db.system.name=postgresql,error.type=_OTHER,sqlfence.outcome=refused} 1`,
		`sqlfence.writes{db.collection.name=books,db.operation.name=UPDATE,db.system.name=postgresql,error.type=stale,sqlfence.outcome=refused} 1`,
		`sqlfence.writes{db.collection.name=books,db.operation.name=UPDATE,db.system.name=postgresql,sqlfence.outcome=guarded} 2`,
		`sqlfence.writes{db.collection.name=books,db.operation.name=UPDATE,db.system.name=sqlite,sqlfence.outcome=guarded,sqlfence.statement_cache=hit} 1`,
		`sqlfence.writes{db.operation.name=UPDATE,db.system.name=postgresql,sqlfence.outcome=bypassed} 1`,
		`sqlfence.writes{db.system.name=sqlite,sqlfence.outcome=raw access} 1`,
	}
	if got := collect(); !slices.Equal(got, want) {
		t.Errorf("metrics:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var events []string
	for _, e := range recorder.Ended()[0].Events() {
		set := attribute.NewSet(e.Attributes...)
		events = append(events, e.Name+" "+set.Encoded(attribute.DefaultEncoder()))
	}
	wantEvents := []string{
		"sqlfence.refused db.collection.name=books,db.operation.name=UPDATE,db.system.name=postgresql,error.type=stale,sqlfence.outcome=refused,sqlfence.token=books/42:225000000000000",
		"sqlfence.bypassed db.operation.name=UPDATE,db.system.name=postgresql,sqlfence.bypass.reason=migration,sqlfence.outcome=bypassed,sqlfence.token=books/42:225000000000000",
		"sqlfence.raw_access db.system.name=sqlite,sqlfence.outcome=raw access",
		"sqlfence.refused db.collection.name=books,db.operation.name=UPDATE,db.system.name=postgresql,error.type=_OTHER,sqlfence.outcome=refused,sqlfence.token=books/42:225000000000000",
	}
	if !slices.Equal(events, wantEvents) {
		t.Errorf("events:\n%s\nwant:\n%s", strings.Join(events, "\n"), strings.Join(wantEvents, "\n"))
	}
}

func TestLeases(t *testing.T) {
	tel, collect := newTelemetry(t)
	for _, kind := range []lease.EventKind{lease.Contended, lease.Acquired, lease.Extended, lease.Extended, lease.Lost} {
		tel.observeLease(t.Context(), lease.Event{Kind: kind, Key: "books/42", Waited: time.Second})
	}
	want := []string{
		"sqlfence.lease.events{sqlfence.lease.event=acquired,sqlfence.resource=books} 1",
		"sqlfence.lease.events{sqlfence.lease.event=contended,sqlfence.resource=books} 1",
		"sqlfence.lease.events{sqlfence.lease.event=extended,sqlfence.resource=books} 2",
		"sqlfence.lease.events{sqlfence.lease.event=lost,sqlfence.resource=books} 1",
		"sqlfence.lease.wait.duration{sqlfence.resource=books} 1",
	}
	if got := collect(); !slices.Equal(got, want) {
		t.Errorf("metrics:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTokens(t *testing.T) {
	tel, collect := newTelemetry(t)
	book := sqlfence.Token{Name: "books/42", Value: sqlfence.MaxToken / 2}
	for _, e := range []tokens.Event{
		{Names: []string{"books/42"}, Tokens: []sqlfence.Token{book}, Calls: 3, Duration: time.Millisecond},
		{Names: []string{"books/42"}, Err: sqlfence.ErrTokenLimit},
		{Names: []string{"books/1", "pens"}, Calls: 1},
	} {
		tel.observeIssue(t.Context(), e)
	}
	want := []string{
		"sqlfence.token.issue.batch{sqlfence.resource=books} 3",
		"sqlfence.token.issue.batch{} 1",
		"sqlfence.token.issue.duration{error.type=token-limit,sqlfence.resource=books} 1",
		"sqlfence.token.issue.duration{sqlfence.resource=books} 1",
		"sqlfence.token.issue.duration{} 1",
		"sqlfence.token.used{sqlfence.resource=books} 0.5",
	}
	if got := collect(); !slices.Equal(got, want) {
		t.Errorf("metrics:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Resources without end are counted together.
func TestManyResources(t *testing.T) {
	tel, collect := newTelemetry(t)
	const n = mostSeries + 10
	for range 2 {
		for i := range n {
			tel.observeLease(t.Context(), lease.Event{Kind: lease.Lost, Key: fmt.Sprint("books", i)})
		}
	}
	lines := collect()
	i := slices.Index(lines, "sqlfence.lease.events{sqlfence.overflow=true} 20")
	if i < 0 || len(lines) > mostSeries+1 || len(tel.leases.known) > mostKeys {
		t.Errorf("%d lines, that of the others is %d; %d are kept", len(lines), i, len(tel.leases.known))
	}
}

// Statements with values in them aren't kept without end, and are counted as one.
func TestManyTexts(t *testing.T) {
	tel, collect := newTelemetry(t)
	const n = 3 * mostKeys
	for i := range n {
		tel.observeWrite(t.Context(), sqlfence.Event{Kind: sqlfence.Bypassed, Query: fmt.Sprint("DELETE FROM books WHERE id = ", i),
			Dialect: sqlfence.MySQL})
	}
	want := fmt.Sprintf("sqlfence.writes{db.operation.name=DELETE,db.system.name=mysql,sqlfence.outcome=bypassed} %d", n)
	if got := collect(); len(got) != 1 || got[0] != want || len(tel.writes.known) > mostKeys {
		t.Errorf("%q, want %q; %d are kept", got, want, len(tel.writes.known))
	}
}

// A long SQL string, for example with a file's content, isn't kept, and is counted by its verb.
func TestLongTexts(t *testing.T) {
	tel, metrics := newTelemetry(t)
	for _, verb := range []string{"INSERT INTO", "UPDATE", "DELETE FROM", "MERGE INTO"} {
		for _, values := range []string{"", strings.Repeat(" ", mostText)} {
			tel.observeWrite(t.Context(), sqlfence.Event{Kind: sqlfence.Refused, Query: "/* a */ " + verb + " books" + values,
				Tables: []string{"books"}, Dialect: sqlfence.Postgres, Err: sqlfence.ErrStale})
		}
	}
	for a := range tel.writes.known {
		if len(a.query) > mostText {
			t.Errorf("a text of %d bytes is kept", len(a.query))
		}
	}
	lines := metrics()
	for _, line := range lines {
		if !strings.Contains(line, "db.operation.name=") || !strings.HasSuffix(line, " 2") {
			t.Error(line)
		}
	}
	if len(lines) != 4 {
		t.Error(lines)
	}
}
