package coverage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// A Report holds the counts of a [Collector]. It encodes as JSON.
type Report struct {
	// Tables has the counts of each registered table that was written, or that a refused statement would have written,
	// in the order of their names.
	Tables []Table `json:"tables"`

	// Unregistered has the counts of each unregistered table that was written, in the order of their names. A table is
	// listed twice if statements name it with its schema and without. Tables with [sqlfence.Exempt] aren't listed.
	Unregistered []Table `json:"unregistered,omitempty"`

	// Statements are in order of urgency: statements with an open [Reason], then refused, bypassed, guarded and passed
	// statements. Within each group the most frequent statement comes first.
	Statements []Statement `json:"statements"`

	// Dropped is the number of executions of further statements than the 10,000 that a collector keeps.
	Dropped int64 `json:"dropped"`
}

// A Table has the counts of the writes to one table.
type Table struct {
	Name string `json:"name"` // the table's name as registered, or as statements write it
	Counts
}

// A Statement has the counts of all statements with one fingerprint.
type Statement struct {
	Fingerprint string   `json:"fingerprint"`
	Tables      []string `json:"tables,omitempty"` // registered tables that it writes to
	Counts
	Reasons []Reason `json:"reasons,omitempty"`
	Places  []string `json:"places,omitempty"` // in the program, with WithCallers

	// Unregistered are the unregistered tables that the statement writes to.
	Unregistered []string `json:"unregistered,omitempty"`
}

// IsOpen reports whether the statement can't be enforced yet, because it has an open reason.
func (s *Statement) IsOpen() bool {
	return slices.ContainsFunc(s.Reasons, func(r Reason) bool { return r.Open })
}

// Report returns a copy of the counts so far. The collector continues to count.
func (c *Collector) Report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := Report{Tables: sorted(c.tables), Unregistered: sorted(c.others), Dropped: c.dropped}
	for _, s := range c.statements {
		one := s.Statement
		one.Tables = slices.Sorted(maps.Keys(s.tables))
		one.Unregistered = slices.Sorted(maps.Keys(s.others))
		one.Places = slices.Sorted(maps.Keys(s.places))
		one.Reasons = slices.Clone(s.Reasons)
		r.Statements = append(r.Statements, one)
	}
	slices.SortFunc(r.Statements, func(a, b Statement) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(b.total(), a.total()),
			strings.Compare(a.Fingerprint, b.Fingerprint))
	})
	return r
}

func sorted(counts map[string]*Counts) (tables []Table) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		tables = append(tables, Table{name, *counts[name]})
	}
	return tables
}

// rank is the place of a statement's kind in a report.
func (s *Statement) rank() int {
	switch {
	case s.IsOpen():
		return 0
	case s.Refused+s.Observed+s.Unanswered > 0:
		return 1
	case s.Bypassed > 0:
		return 2
	case s.Guarded > 0:
		return 3
	}
	return 4
}

// WriteText writes the report as text for people: the tables, then the statements, each with its reasons and places.
// Errors are the writer's.
func (r Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	writeTables(t, r.Tables, "table")
	if len(r.Unregistered) > 0 {
		writeTables(t, r.Unregistered, "table that isn't registered")
	}
	fmt.Fprintln(t, "guarded\trefused\tobserved\tunfenced\tbypassed\tpassed\tstatement")
	for i := range r.Statements {
		s := &r.Statements[i]
		s.write(t, oneLine(s.Fingerprint))
		for _, reason := range s.Reasons {
			at := ""
			if reason.Offset >= 0 {
				at = fmt.Sprintf("at byte %d: ", reason.Offset)
			}
			fmt.Fprintf(t, "\t\t\t\t\t\t  %d× %s%s\n", reason.Count, at, oneLine(reason.Text))
		}
		if len(s.Places) > 0 {
			fmt.Fprintf(t, "\t\t\t\t\t\t  %s\n", strings.Join(s.Places, " "))
		}
	}
	if r.Dropped > 0 {
		fmt.Fprintf(t, "\n%d executions of further statements\n", r.Dropped)
	}
	return t.Flush()
}

func writeTables(w io.Writer, tables []Table, what string) {
	fmt.Fprintln(w, "guarded\trefused\tobserved\tunfenced\tbypassed\tpassed\t"+what)
	for i := range tables {
		tables[i].write(w, tables[i].Name)
	}
	fmt.Fprintln(w)
}

func (n *Counts) write(w io.Writer, name string) {
	for _, count := range []int64{n.Guarded, n.Refused, n.Observed, n.Unfenced, n.Bypassed, n.Passed} {
		if count > 0 {
			fmt.Fprint(w, count)
		} else {
			fmt.Fprint(w, "–")
		}
		fmt.Fprint(w, "\t")
	}
	fmt.Fprintln(w, name)
}

// oneLine replaces line breaks and tabs in a text, so that it stays in its cell of the table.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// WriteJSON writes the report as indented JSON. Errors are the writer's.
func (r Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// Check returns an error that lists the statements with open reasons, and also if the report has dropped statements. It
// returns nil if every statement was guarded, needs no guard, failed with an error that a correct program can get, or
// was sent under Bypass. Call Check in a test, after the program's tests have run on a database with the Collector.
func (r Report) Check() error {
	var open []string
	for i := range r.Statements {
		s := &r.Statements[i]
		for _, reason := range s.Reasons {
			if reason.Open {
				open = append(open, strings.TrimSpace(fmt.Sprintf("%s: %s %s", oneLine(s.Fingerprint), reason.Text,
					strings.Join(s.Places, " "))))
			}
		}
	}
	if r.Dropped > 0 {
		open = append(open, fmt.Sprintf("%d executions of further statements weren't kept", r.Dropped))
	}
	if len(open) == 0 {
		return nil
	}
	return fmt.Errorf("coverage: %d not guarded:\n  %s", len(open), strings.Join(open, "\n  "))
}
