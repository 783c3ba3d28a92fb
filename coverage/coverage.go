package coverage

import (
	"context"
	"fmt"
	"sync"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/core"
)

// A Collector counts the outcomes of statements. Create a Collector with [New]. It is safe for concurrent use by
// several databases.
type Collector struct {
	limit   int // number of fingerprints
	callers bool
	skip    []string

	mu         sync.Mutex
	statements map[string]*statement // by fingerprint
	tables     map[string]*Counts
	others     map[string]*Counts // tables that aren't registered
	texts      map[string]string  // the fingerprints of recent texts
	dropped    int64
}

type statement struct {
	Statement
	tables map[string]bool
	others map[string]bool
	places map[string]bool
}

// A collector's memory is bounded.
const (
	mostStatements = 10_000  // number of fingerprints
	maxText        = 4 << 10 // bytes of a fingerprint
	maxTexts       = 1_000   // number of statements with a cached fingerprint
	maxReasons     = 20      // number of reasons for one statement
	maxPlaces      = 20      // number of places for one statement
)

// An Option configures a [Collector].
type Option func(*Collector)

// WithCallers records from which places of the program each statement was sent, such as "store/books.go:42". A place is
// in the innermost function of the stack that doesn't belong to sqlfence, to the module cache, to a vendor folder, or
// to a package such as database/sql. To skip more packages, such as the program's database layer, pass the beginnings
// of their paths. For a query the place may be the line that closed the rows. A statement keeps at most 20 places.
func WithCallers(skip ...string) Option {
	return func(c *Collector) { c.callers, c.skip = true, append(c.skip, skip...) }
}

// New returns an empty collector. It keeps 10,000 fingerprints: executions of further statements are only counted by
// table, and in [Report.Dropped]. By default it keeps no places in the program ([WithCallers]).
func New(opts ...Option) *Collector {
	c := &Collector{limit: mostStatements, statements: make(map[string]*statement), tables: make(map[string]*Counts),
		others: make(map[string]*Counts), texts: make(map[string]string)}
	for _, opt := range opts {
		opt(c)
	}
	return c
}

// Option returns the option of [sqlfence.Open] with which a database reports its statements to the collector. Several
// databases may have the option.
func (c *Collector) Option() sqlfence.Option {
	observe := sqlfence.WithObserver(c.Observe, sqlfence.Refused, sqlfence.WouldRefuse, sqlfence.Bypassed,
		sqlfence.Unfenced, sqlfence.Guarded, sqlfence.Passed, sqlfence.Unanswered)
	return func(o *core.Options) {
		observe(o)
		o.Observers = append(o.Observers, core.Listener{Report: c.observeOthers,
			Kinds: ^core.Kinds(1 << core.RawAccess)})
	}
}

// Observe counts an event. It is a [sqlfence.Observer], for programs that can't use [Collector.Option]. Pass the kinds
// of events to [sqlfence.WithObserver], because by default WithObserver reports neither guarded statements nor
// [sqlfence.Passed]. Observe can't count unregistered tables; only Option can. Observe is safe for concurrent use.
func (c *Collector) Observe(_ context.Context, e sqlfence.Event) {
	if e.Query == "" && e.Err == nil {
		return
	}
	place := ""
	if c.callers {
		place = c.caller()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	count(c.tables, e.Tables, &e)
	s := c.statement(c.fingerprint(&e))
	if s == nil {
		c.dropped++
		return
	}
	s.add(&e)
	s.addReason(&e)
	addTo(s.tables, e.Tables...)
	if place != "" && len(s.places) < maxPlaces {
		addTo(s.places, place)
	}
}

// observeOthers counts an event for unregistered tables, after Observe has counted the event.
func (c *Collector) observeOthers(_ context.Context, e core.Event) {
	others := e.Settings.Unregistered(e.Query)
	if len(others) == 0 {
		return
	}
	public := sqlfence.Event{Kind: sqlfence.EventKind(e.Kind), Query: e.Query, Duration: e.Duration, Dialect: e.Dialect}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.statements[c.fingerprint(&public)]; s != nil {
		count(c.others, others, &public)
		addTo(s.others, others...)
	}
}

func count(of map[string]*Counts, tables []string, e *sqlfence.Event) {
	for _, table := range tables {
		counts := of[table]
		if counts == nil {
			counts = new(Counts)
			of[table] = counts
		}
		counts.add(e)
	}
}

// fingerprint returns an event's fingerprint, which is cached by SQL string.
func (c *Collector) fingerprint(e *sqlfence.Event) string {
	if e.Query == "" {
		return "(a connection)"
	}
	if f, ok := c.texts[e.Query]; ok {
		return f
	}
	f := clip(e.Fingerprint(), maxText)
	if len(e.Query) <= maxText {
		if len(c.texts) == maxTexts {
			clear(c.texts)
		}
		c.texts[e.Query] = f
	}
	return f
}

// statement returns the statement of a fingerprint; nil if the fingerprint is new and the limit is reached.
func (c *Collector) statement(fingerprint string) *statement {
	s := c.statements[fingerprint]
	if s == nil && len(c.statements) < c.limit {
		s = &statement{tables: make(map[string]bool), others: make(map[string]bool), places: make(map[string]bool)}
		s.Fingerprint = fingerprint
		c.statements[fingerprint] = s
	}
	return s
}

func addTo(set map[string]bool, all ...string) {
	for _, one := range all {
		set[one] = true
	}
}

// clip cuts a text to at most n bytes, and appends a mark if it has cut.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return fmt.Sprintf("%.*s…", n/4, text) // n/4 characters
}
