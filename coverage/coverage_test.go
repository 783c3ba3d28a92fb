package coverage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/coverage"
)

func event(kind sqlfence.EventKind, query string, err error) sqlfence.Event {
	return sqlfence.Event{Kind: kind, Query: query, Err: err, Tables: []string{"books"}, Dialect: sqlfence.SQLite}
}

// Every kind of event has its counter, and makes a statement open or not.
func TestKindsOfEventsAreCounted(t *testing.T) {
	const query = "UPDATE books SET price = 1"
	unguardable := &sqlfence.UnguardableError{Table: "books", Reason: "it is odd", Offset: 7}
	for name, tt := range map[string]struct {
		event sqlfence.Event
		want  coverage.Counts
		open  bool
		text  string
	}{
		"guarded":     {event(sqlfence.Guarded, query, nil), coverage.Counts{Guarded: 1}, false, ""},
		"passed":      {event(sqlfence.Passed, query, nil), coverage.Counts{Passed: 1}, false, ""},
		"unfenced":    {event(sqlfence.Unfenced, query, nil), coverage.Counts{Unfenced: 1}, true, "no token for an Optional table"},
		"new rows":    {sqlfence.Event{Kind: sqlfence.Unfenced, Query: query, Reason: "UnfencedInserts", Tables: []string{"books"}, Dialect: sqlfence.SQLite}, coverage.Counts{Unfenced: 1}, false, "no token, which UnfencedInserts allows"},
		"bypassed":    {sqlfence.Event{Kind: sqlfence.Bypassed, Query: query, Reason: "repair", Tables: []string{"books"}, Dialect: sqlfence.SQLite}, coverage.Counts{Bypassed: 1}, false, "bypassed: repair"},
		"unguardable": {event(sqlfence.Refused, query, unguardable), coverage.Counts{Refused: 1}, true, "it is odd"},
		"no token":    {event(sqlfence.WouldRefuse, query, fmt.Errorf("%w: none", sqlfence.ErrNoFence)), coverage.Counts{Observed: 1}, true, "sqlfence: no fencing token: none"},
		"stale":       {event(sqlfence.Refused, query, &sqlfence.StaleError{Table: "books"}), coverage.Counts{Refused: 1}, false, "sqlfence: stale fencing token"},
		"locked":      {event(sqlfence.WouldRefuse, query, &sqlfence.LockedError{By: "ada"}), coverage.Counts{Observed: 1}, false, "sqlfence: row is locked"},
	} {
		t.Run(name, func(t *testing.T) {
			c := coverage.New()
			c.Observe(t.Context(), tt.event)
			r := c.Report()
			if len(r.Statements) != 1 || len(r.Tables) != 1 {
				t.Fatalf("report = %+v", r)
			}
			s := r.Statements[0]
			if s.Counts != tt.want || r.Tables[0].Counts != tt.want || r.Tables[0].Name != "books" {
				t.Errorf("counts = %+v, of the table %+v, want %+v", s.Counts, r.Tables[0], tt.want)
			}
			if s.IsOpen() != tt.open || (r.Check() != nil) != tt.open {
				t.Errorf("open = %v, Check = %v, want open %v", s.IsOpen(), r.Check(), tt.open)
			}
			switch {
			case tt.text == "" && len(s.Reasons) == 0:
			case len(s.Reasons) != 1 || !strings.Contains(s.Reasons[0].Text, tt.text):
				t.Errorf("reasons = %+v, want %q", s.Reasons, tt.text)
			case tt.open && !strings.Contains(r.Check().Error(), tt.text):
				t.Errorf("Check = %v, want the reason in it", r.Check())
			}
			if s.Fingerprint != "UPDATE books SET price = ?" {
				t.Errorf("fingerprint = %q", s.Fingerprint)
			}
		})
	}
}

// RawAccess has no statement.
func TestRawAccess(t *testing.T) {
	c := coverage.New()
	c.Observe(t.Context(), sqlfence.Event{Kind: sqlfence.RawAccess})
	if r := c.Report(); len(r.Statements) != 0 {
		t.Errorf("report = %+v", r)
	}
}

// Open statements come first, and frequent statements before rare ones.
func TestOrderOfTheReportPutsOpenStatementsFirst(t *testing.T) {
	c := coverage.New()
	see := func(n int, e sqlfence.Event) {
		for range n {
			c.Observe(t.Context(), e)
		}
	}
	see(9, event(sqlfence.Passed, "SELECT a", nil))
	see(1, event(sqlfence.Guarded, "DELETE FROM books", nil))
	see(2, event(sqlfence.Guarded, "UPDATE books SET b = 2", nil))
	see(1, event(sqlfence.Refused, "UPDATE books SET c = 3", sqlfence.ErrStale))
	see(1, event(sqlfence.Refused, "TRUNCATE books", sqlfence.ErrUnguardable))
	var got []string
	for _, s := range c.Report().Statements {
		got = append(got, s.Fingerprint)
	}
	want := []string{"TRUNCATE books", "UPDATE books SET c = ?", "UPDATE books SET b = ?", "DELETE FROM books", "SELECT a"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("order = %q, want %q", got, want)
	}
}

// The memory stays bounded if a program writes values into its SQL strings, or if the reasons always differ.
func TestBoundsOfMemoryHold(t *testing.T) {
	c := coverage.Limited(3)
	for i := range 5000 {
		c.Observe(t.Context(), event(sqlfence.Refused, fmt.Sprintf("UPDATE books SET a = %d", i), fmt.Errorf("reason %d", i)))
	}
	for i := range 5 {
		c.Observe(t.Context(), event(sqlfence.Passed, fmt.Sprintf("SELECT a%d", i), nil))
	}
	c.Observe(t.Context(), event(sqlfence.Guarded, "UPDATE books SET "+strings.Repeat("long = 1, ", 10_000)+"b = 2", nil))
	r := c.Report()
	if len(r.Statements) != 3 || r.Dropped != 4 || r.Tables[0].Refused != 5000 || r.Tables[0].Guarded != 1 {
		t.Errorf("%d statements, %d dropped, %+v", len(r.Statements), r.Dropped, r.Tables)
	}
	s := r.Statements[0]
	var sum int64
	for _, reason := range s.Reasons {
		sum += reason.Count
	}
	if len(s.Reasons) != 20 || sum != 5000 || !s.IsOpen() {
		t.Errorf("%d reasons of %d refusals", len(s.Reasons), sum)
	}
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "4 executions") {
		t.Errorf("Check = %v", err)
	}
	c = coverage.New()
	c.Observe(t.Context(), event(sqlfence.Guarded, "UPDATE books SET "+strings.Repeat("long = 1, ", 10_000)+"b = 2", nil))
	if n := len(c.Report().Statements[0].Fingerprint); n > 5000 {
		t.Errorf("a fingerprint of %d bytes", n)
	}
}

// Many goroutines may be observed at once.
func TestConcurrentEventsAreCounted(t *testing.T) {
	c := coverage.New(coverage.WithCallers())
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 200 {
				c.Observe(t.Context(), event(sqlfence.Guarded, fmt.Sprintf("UPDATE books SET a%d = %d", g%4, i), nil))
				if i%50 == 0 {
					_ = c.Report()
				}
			}
		})
	}
	all.Wait()
	if r := c.Report(); r.Tables[0].Guarded != 1600 || len(r.Statements) != 4 {
		t.Errorf("report = %+v", r)
	}
}

// The caller of a statement is this test. If the test's package is skipped, there is no caller.
func TestCallersAreNamed(t *testing.T) {
	c := coverage.New(coverage.WithCallers())
	c.Observe(t.Context(), event(sqlfence.Guarded, "DELETE FROM books", nil))
	if p := c.Report().Statements[0].Places; len(p) != 1 || !strings.HasPrefix(p[0], "coverage/coverage_test.go:") {
		t.Errorf("places = %q", p)
	}
	c = coverage.New(coverage.WithCallers("github.com/sqlfence/sqlfence/coverage_test"))
	c.Observe(t.Context(), event(sqlfence.Guarded, "DELETE FROM books", nil))
	if p := c.Report().Statements[0].Places; len(p) != 0 {
		t.Errorf("places = %q, want none", p)
	}
}

func TestJSON(t *testing.T) {
	c := coverage.New()
	c.Observe(t.Context(), event(sqlfence.Guarded, "DELETE FROM books WHERE id < 7", nil))
	c.Observe(t.Context(), event(sqlfence.Refused, "TRUNCATE books", &sqlfence.UnguardableError{Reason: "odd", Offset: 3}))
	var text bytes.Buffer
	if err := c.Report().WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	var back coverage.Report
	if err := json.Unmarshal(text.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if want := c.Report(); !reflect.DeepEqual(normal(back), normal(want)) {
		t.Errorf("read back\n%+v\nwant\n%+v", back, want)
	}
	if !strings.Contains(text.String(), "id < ?") {
		t.Errorf("the text is escaped: %s", &text)
	}
}

// normal has no empty lists.
func normal(r coverage.Report) coverage.Report {
	for i := range r.Statements {
		if s := &r.Statements[i]; len(s.Places) == 0 {
			s.Places = nil
		}
	}
	return r
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriterFails(t *testing.T) {
	c := coverage.New()
	c.Observe(context.Background(), event(sqlfence.Guarded, "DELETE FROM books", nil))
	if err := c.Report().WriteText(broken{}); err == nil {
		t.Error("WriteText has no error")
	}
	if err := c.Report().WriteJSON(broken{}); err == nil {
		t.Error("WriteJSON has no error")
	}
}
