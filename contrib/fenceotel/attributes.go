package fenceotel

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/refusal"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/tokens"
)

// other is the conventions' value for an error outside of a list.
const other = "_OTHER"

// An about is all that the attributes of a write depend on.
type about struct {
	kind    sqlfence.EventKind
	dialect sqlfence.Dialect
	query   string
	table   string // empty if there are several: the conventions name none then
	failed  string // the value of the attribute error.type
	cache   sqlfence.CacheUse
}

func aboutOf(e *sqlfence.Event) about {
	a := about{kind: e.Kind, dialect: e.Dialect, query: e.Query, cache: e.Cache}
	if len(e.Tables) == 1 {
		a.table = e.Tables[0]
	}
	if len(e.Query) > mostText {
		a.query = e.Verb() // it has the same verb
	}
	if e.Err != nil {
		a.failed = cmp.Or(refusal.Name(e.Err), other)
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
	if a.cache != sqlfence.Uncached {
		all = append(all, cacheKey.String(a.cache.String()))
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

// An issued is all that the attributes of an issue depend on.
type issued struct {
	resource string // empty if there are several
	failed   string
}

func issuedOf(e *tokens.Event) issued {
	of := issued{resource: resource(e.Names[0])}
	if slices.ContainsFunc(e.Names, func(name string) bool { return resource(name) != of.resource }) {
		of.resource = ""
	}
	if e.Err != nil {
		of.failed = cmp.Or(refusal.Name(e.Err), other)
	}
	return of
}

func (i issued) attributes() (all []attribute.KeyValue) {
	if i.resource != "" {
		all = ofResource(i.resource)
	}
	if i.failed != "" {
		all = append(all, semconv.ErrorTypeKey.String(i.failed))
	}
	return all
}

func ofResource(resource string) []attribute.KeyValue {
	return []attribute.KeyValue{resourceKey.String(resource)}
}

// system is the database's name, which OpenTelemetry's registry writes in lower case.
func system(d sqlfence.Dialect) attribute.KeyValue {
	return semconv.DBSystemNameKey.String(strings.ToLower(d.String()))
}
