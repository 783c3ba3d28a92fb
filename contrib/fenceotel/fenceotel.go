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
	"github.com/sqlfence/sqlfence/tokens"
)

// scope is the name of the meter.
const scope = "github.com/sqlfence/sqlfence/contrib/fenceotel"

// The attributes that the conventions have no names for.
const (
	outcomeKey  = attribute.Key("sqlfence.outcome")
	cacheKey    = attribute.Key("sqlfence.statement_cache")
	resourceKey = attribute.Key("sqlfence.resource")
	eventKey    = attribute.Key("sqlfence.lease.event")
	tokenKey    = attribute.Key("sqlfence.token")
	reasonKey   = attribute.Key("sqlfence.bypass.reason")
)

// A Telemetry has the instruments of a program's databases and leases; a program needs only one. A Telemetry is safe
// for concurrent use.
type Telemetry struct {
	writes    table[about]
	resources table[string]
	leases    table[happened]
	issues    table[issued]

	duration, waited, issue metric.Float64Histogram
	batch                   metric.Int64Histogram
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
	t := &Telemetry{writes: table[about]{attributes: about.attributes}, resources: table[string]{attributes: ofResource},
		leases: table[happened]{attributes: happened.attributes}, issues: table[issued]{attributes: issued.attributes}}
	if err := t.instrument(c.meters.Meter(scope)); err != nil {
		return nil, fmt.Errorf("fenceotel: %w", err)
	}
	return t, nil
}

// The bucket boundaries of histograms. ofStatements has the boundaries of the conventions for
// db.client.operation.duration.
var (
	ofStatements = metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)
	ofWaits      = metric.WithExplicitBucketBoundaries(0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300)
	ofBatches    = metric.WithExplicitBucketBoundaries(1, 2, 4, 8, 16, 32, 64, 128, 256)
)

func (t *Telemetry) instrument(m metric.Meter) error {
	var failed [7]error
	_, failed[0] = m.Int64ObservableCounter("sqlfence.writes", metric.WithUnit("{statement}"),
		metric.WithDescription("Statements on fenced tables, by what became of them."), metric.WithInt64Callback(counts(&t.writes)))
	t.duration, failed[1] = m.Float64Histogram("sqlfence.write.duration", metric.WithUnit("s"),
		metric.WithDescription("Time of guarded statements, from sending to the answer."), ofStatements)
	_, failed[2] = m.Float64ObservableGauge("sqlfence.token.used", metric.WithUnit("1"),
		metric.WithDescription("The last token that was issued or carried, as a part of the highest possible."),
		metric.WithFloat64Callback(lasts(&t.resources)))
	_, failed[3] = m.Int64ObservableCounter("sqlfence.lease.events", metric.WithUnit("{event}"),
		metric.WithDescription("What happened to leases."), metric.WithInt64Callback(counts(&t.leases)))
	t.waited, failed[4] = m.Float64Histogram("sqlfence.lease.wait.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from asking for a lease to holding it."), ofWaits)
	t.issue, failed[5] = m.Float64Histogram("sqlfence.token.issue.duration", metric.WithUnit("s"),
		metric.WithDescription("Time of calls that issue tokens."), ofStatements)
	t.batch, failed[6] = m.Int64Histogram("sqlfence.token.issue.batch", metric.WithUnit("{call}"),
		metric.WithDescription("How many calls the statement has served that issued a call's tokens."), ofBatches)
	return errors.Join(failed[:]...)
}

// Writes returns the option for [sqlfence.Open] and the other functions that open a database.
func (t *Telemetry) Writes() sqlfence.Option {
	return sqlfence.WithObserver(t.observeWrite, sqlfence.Guarded, sqlfence.Refused, sqlfence.WouldRefuse,
		sqlfence.Bypassed, sqlfence.Unfenced, sqlfence.RawAccess, sqlfence.Unanswered)
}

// Leases returns the option for [lease.New].
func (t *Telemetry) Leases() lease.Option { return lease.WithObserver(t.observeLease) }

// Tokens returns the option for [tokens.New].
func (t *Telemetry) Tokens() tokens.Option { return tokens.WithObserver(t.observeIssue) }

func (t *Telemetry) observeWrite(ctx context.Context, e sqlfence.Event) {
	a := aboutOf(&e)
	s := t.writes.series(a)
	s.count.Add(1)
	if e.Kind != sqlfence.Guarded {
		t.addEvent(ctx, &e, a)
		return
	}
	t.duration.Record(ctx, e.Duration.Seconds(), s.record...)
	t.used(e.Tokens)
}

func (t *Telemetry) used(tokens []sqlfence.Token) {
	for _, token := range tokens {
		t.resources.series(resource(token.Name)).set(float64(token.Value) / sqlfence.MaxToken)
	}
}

func (t *Telemetry) observeIssue(ctx context.Context, e tokens.Event) {
	s := t.issues.series(issuedOf(&e))
	t.issue.Record(ctx, e.Duration.Seconds(), s.record...)
	if e.Calls > 0 {
		t.batch.Record(ctx, int64(e.Calls), s.record...)
	}
	t.used(e.Tokens)
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
	t.leases.series(of).count.Add(1)
	if e.Kind == lease.Acquired {
		t.waited.Record(ctx, e.Waited.Seconds(), t.resources.series(of.resource).record...)
	}
}

// resource returns the part of a token's name that isn't a row's key.
func resource(name string) string {
	resource, _, _ := strings.Cut(name, "/")
	return resource
}
