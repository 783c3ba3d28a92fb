package fenceotel

import (
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
)

// An about is all that the attributes of a write depend on.
type about struct {
	kind    sqlfence.EventKind
	dialect sqlfence.Dialect
	query   string
	table   string // empty if there are several: the conventions name none then
	failed  string // as error.type
}

func aboutOf(e *sqlfence.Event) about {
	a := about{kind: e.Kind, dialect: e.Dialect, query: e.Query}
	if len(e.Tables) == 1 {
		a.table = e.Tables[0]
	}
	if len(e.Query) > mostText {
		a.query = e.Verb() // it has the same verb
	}
	if e.Err != nil {
		a.failed = errorType(e.Err)
	}
	return a
}

func (a about) attributes() []attribute.KeyValue {
	all := append(make([]attribute.KeyValue, 0, 8), system(a.dialect), outcomeKey.String(a.kind.String()))
	if verb := (sqlfence.Event{Query: a.query, Dialect: a.dialect}).Verb(); verb != "" {
		all = append(all, semconv.DBOperationName(verb))
	}
	if a.table != "" {
		all = append(all, semconv.DBCollectionName(a.table))
	}
	if a.failed != "" {
		all = append(all, semconv.ErrorTypeKey.String(a.failed))
	}
	return all
}

// A happened is all that the attributes of a lease's event depend on.
type happened struct {
	resource string
	kind     lease.EventKind
}

func (h happened) attributes() []attribute.KeyValue {
	return append(ofResource(h.resource), eventKey.String(h.kind.String()))
}

func ofResource(resource string) []attribute.KeyValue {
	return []attribute.KeyValue{resourceKey.String(resource)}
}

// system is the database's name, which OpenTelemetry's registry writes in lower case.
func system(d sqlfence.Dialect) attribute.KeyValue {
	return semconv.DBSystemNameKey.String(strings.ToLower(d.String()))
}

// A set is attributes, as the instruments take them without an allocation.
type set struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

// sets keeps the attributes of what K is: making them takes longer than counting. It is safe for concurrent use.
type sets[K comparable] struct {
	mu    sync.RWMutex
	known map[K]*set
}

// mostSets and mostText, in bytes, bound the memory for a program with values in its statements, which aren't seen twice.
const (
	mostSets = 1024
	mostText = 4096
)

// of returns the set of a key, made of attributes if it is new.
func (s *sets[K]) of(key K, attributes func(K) []attribute.KeyValue) *set {
	s.mu.RLock()
	found, ok := s.known[key]
	s.mu.RUnlock()
	if ok {
		return found
	}
	made := metric.WithAttributeSet(attribute.NewSet(attributes(key)...))
	found = &set{[]metric.AddOption{made}, []metric.RecordOption{made}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= mostSets {
		s.known = make(map[K]*set)
	}
	s.known[key] = found
	return found
}
