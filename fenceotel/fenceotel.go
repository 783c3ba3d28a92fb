package fenceotel

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
)

// scope is the name of the meter.
const scope = "github.com/sqlfence/sqlfence/fenceotel"

// The attributes that the conventions have no names for.
const (
	outcomeKey  = attribute.Key("sqlfence.outcome")
	resourceKey = attribute.Key("sqlfence.resource")
	eventKey    = attribute.Key("sqlfence.lease.event")
	tokenKey    = attribute.Key("sqlfence.token")
	reasonKey   = attribute.Key("sqlfence.bypass.reason")
)

// A Telemetry has the instruments of a program's databases and leases; one is enough. New returns one; it is safe
// for concurrent use.
type Telemetry struct {
	writes   metric.Int64Counter
	duration metric.Float64Histogram
	used     metric.Float64Gauge
	events   metric.Int64Counter
	waited   metric.Float64Histogram

	ofWrites    sets[about]
	ofResources sets[string]
	ofLeases    sets[happened]
}

// An Option changes what [New] makes.
type Option func(*config)

type config struct{ meters metric.MeterProvider }

// WithMeterProvider sets where the metrics go: by default to OpenTelemetry's global provider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(c *config) { c.meters = p }
}

// New makes the instruments. The errors are those of the provider.
func New(options ...Option) (*Telemetry, error) {
	c := config{meters: otel.GetMeterProvider()}
	for _, o := range options {
		o(&c)
	}
	m := c.meters.Meter(scope)
	t := new(Telemetry)
	var failed [5]error
	t.writes, failed[0] = m.Int64Counter("sqlfence.writes", metric.WithUnit("{statement}"),
		metric.WithDescription("Statements on fenced tables, by what became of them."))
	t.duration, failed[1] = m.Float64Histogram("sqlfence.write.duration", metric.WithUnit("s"),
		metric.WithDescription("Time of guarded statements, from sending to the answer."),
		// The boundaries that the conventions advise for db.client.operation.duration.
		metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10))
	t.used, failed[2] = m.Float64Gauge("sqlfence.token.used", metric.WithUnit("1"),
		metric.WithDescription("The last token that a guarded statement carried, as a part of the highest possible."))
	t.events, failed[3] = m.Int64Counter("sqlfence.lease.events", metric.WithUnit("{event}"),
		metric.WithDescription("What happened to leases."))
	t.waited, failed[4] = m.Float64Histogram("sqlfence.lease.wait.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from asking for a lease to holding it."),
		metric.WithExplicitBucketBoundaries(0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300))
	if err := errors.Join(failed[:]...); err != nil {
		return nil, fmt.Errorf("fenceotel: %w", err)
	}
	return t, nil
}

// Writes returns the option for [sqlfence.Open] and the others that open a database.
func (t *Telemetry) Writes() sqlfence.Option {
	return sqlfence.WithObserver(t.observeWrite, sqlfence.Guarded, sqlfence.Refused, sqlfence.WouldRefuse,
		sqlfence.Bypassed, sqlfence.Unfenced, sqlfence.RawAccess)
}

// Leases returns the option for [lease.New].
func (t *Telemetry) Leases() lease.Option { return lease.WithObserver(t.observeLease) }

func (t *Telemetry) observeWrite(ctx context.Context, e sqlfence.Event) {
	a := aboutOf(&e)
	set := t.ofWrites.of(a, about.attributes)
	t.writes.Add(ctx, 1, set.add...)
	if e.Kind != sqlfence.Guarded {
		t.addEvent(ctx, &e, a)
		return
	}
	t.duration.Record(ctx, e.Duration.Seconds(), set.record...)
	for _, token := range e.Tokens {
		set := t.ofResources.of(resource(token.Name), ofResource)
		t.used.Record(ctx, float64(token.Value)/sqlfence.MaxToken, set.record...)
	}
}

// addEvent adds an event to the caller's span, with the tokens, which are too many for a metric.
func (t *Telemetry) addEvent(ctx context.Context, e *sqlfence.Event, a about) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	attributes := a.attributes()
	for _, token := range e.Tokens {
		attributes = append(attributes, tokenKey.String(token.String()))
	}
	if e.Reason != "" {
		attributes = append(attributes, reasonKey.String(e.Reason))
	}
	span.AddEvent("sqlfence."+strings.ReplaceAll(e.Kind.String(), " ", "_"), trace.WithAttributes(attributes...))
}

func (t *Telemetry) observeLease(ctx context.Context, e lease.Event) {
	of := happened{resource(e.Key), e.Kind}
	t.events.Add(ctx, 1, t.ofLeases.of(of, happened.attributes).add...)
	if e.Kind == lease.Acquired {
		t.waited.Record(ctx, e.Waited.Seconds(), t.ofResources.of(of.resource, ofResource).record...)
	}
}

// resource returns the part of a token's name that isn't a row's key.
func resource(name string) string {
	resource, _, _ := strings.Cut(name, "/")
	return resource
}
