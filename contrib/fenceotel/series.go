package fenceotel

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// A series has the measurements of one set of attributes. Because each call of an OpenTelemetry instrument takes half a
// microsecond, a series counts without OpenTelemetry, and reports its count when metrics are collected.
type series struct {
	of     metric.MeasurementOption
	record []metric.RecordOption // the same, as a histogram takes it without an allocation
	count  atomic.Int64
	last   atomic.Uint64 // the bits of a float64
}

func (s *series) set(value float64) { s.last.Store(math.Float64bits(value)) }

// A table caches the series of each key, because building attributes takes longer than counting. It is safe for
// concurrent use.
type table[K comparable] struct {
	attributes func(K) []attribute.KeyValue

	mu    sync.RWMutex
	known map[K]*series // a forgotten key's series is found again in all
	all   map[attribute.Distinct]*series
}

// The bounds of a table. The map known is emptied at mostKeys keys, because a program that writes values into its SQL
// has a new key for each statement. After mostSeries series, less than OpenTelemetry's limit of 2000, further
// attributes count in one series with the attribute sqlfence.overflow. It isn't the SDK's overflow attribute, because
// after a series with the SDK's attribute the SDK counts every new series as overflow.
const (
	mostKeys   = 1024
	mostSeries = 1000
	mostText   = 4096 // bytes of a key
)

var beyond = attribute.Bool("sqlfence.overflow", true)

// series returns the series of a key.
func (t *table[K]) series(key K) *series {
	t.mu.RLock()
	found, ok := t.known[key]
	t.mu.RUnlock()
	if ok {
		return found
	}
	set := attribute.NewSet(t.attributes(key)...)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || len(t.known) >= mostKeys {
		t.known = make(map[K]*series)
	}
	found = t.find(set)
	t.known[key] = found
	return found
}

func (t *table[K]) find(set attribute.Set) *series {
	if len(t.all) >= mostSeries && t.all[set.Equivalent()] == nil {
		set = attribute.NewSet(beyond)
	}
	if found := t.all[set.Equivalent()]; found != nil {
		return found
	}
	of := metric.WithAttributeSet(set)
	made := &series{of: of, record: []metric.RecordOption{of}}
	if t.all == nil {
		t.all = make(map[attribute.Distinct]*series)
	}
	t.all[set.Equivalent()] = made
	return made
}

// each calls f with all series.
func (t *table[K]) each(f func(*series)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, s := range t.all {
		f(s)
	}
}

// counts returns the callback with which an instrument reads the counts of a table.
func counts[K comparable](t *table[K]) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		t.each(func(s *series) { o.Observe(s.count.Load(), s.of) })
		return nil
	}
}

// lasts returns the callback with which an instrument reads the last values of a table's series.
func lasts[K comparable](t *table[K]) metric.Float64Callback {
	return func(_ context.Context, o metric.Float64Observer) error {
		t.each(func(s *series) {
			if bits := s.last.Load(); bits != 0 {
				o.Observe(math.Float64frombits(bits), s.of)
			}
		})
		return nil
	}
}
