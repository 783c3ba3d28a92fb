package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// writeReport writes benchmarks.md into a folder, and the tables and their plots into its folder data.
func writeReport(folder string, r *results) error {
	var page, tables strings.Builder
	r.head(&page)
	r.goals(&page)
	r.beforeAndNow(r.config.log)
	tables.WriteString("# Benchmarks: all tables\n\nOf the run that [benchmarks](../benchmarks.md) describes.\n\n")
	plots := make(map[string][]byte)
	for _, g := range groups {
		if err := r.chapter(&tables, g, plots); err != nil {
			return err
		}
	}
	images := filepath.Join(folder, "data", "benchmarks")
	errs := []error{os.MkdirAll(images, 0o755)}
	for name, svg := range plots {
		errs = append(errs, os.WriteFile(filepath.Join(images, name), svg, 0o644))
	}
	page.WriteString("## Pictures\n\nThe time of a guarded write and of what one would do without sqlfence. " +
		"All tables are in [data/benchmarks.md](data/benchmarks.md).\n\n")
	for _, name := range []string{"ways-1-caller.svg", "ways-64-callers.svg"} {
		if plots[name] != nil {
			fmt.Fprintf(&page, "![%s](data/benchmarks/%s)\n\n", strings.TrimSuffix(name, ".svg"), name)
		}
	}
	file := filepath.Join(folder, "benchmarks.md")
	errs = append(errs, os.WriteFile(file, []byte(strings.TrimSuffix(page.String(), "\n")), 0o644),
		os.WriteFile(filepath.Join(folder, "data", "benchmarks.md"), []byte(tables.String()), 0o644))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Fprintln(r.config.log, "written:", file)
	return nil
}

func (r *results) head(b *strings.Builder) {
	fmt.Fprintf(b, `# Benchmarks

Written by %s, on %s, in %s. Edit the program, not this page.

`, "`go run ./test/bench -out docs`", r.started.Format("2 January 2006"), r.took.Round(1e9))
	if r.config.short {
		b.WriteString("**A run with -short: the figures mean nothing.**\n\n")
	}
	if r.config.only.String() != "" {
		fmt.Fprintf(b, "**A part: -only %q.**\n\n", r.config.only)
	}
	for _, line := range machine(r.servers) {
		fmt.Fprintf(b, "- %s\n", line)
	}
	fmt.Fprintf(b, "- load at the end: %s\n", load())
	for name, why := range r.servers.Missing {
		fmt.Fprintf(b, "- **without %s**: %s\n", name, why)
	}
	fmt.Fprintf(b, `- network, where there is one: %v in each direction, so a round trip takes %v longer

Contestants take turns, %s each, in slices of %v. A ratio is the contestant's
time divided by the first contestant's in the same round: the tables have the median of the
rounds, ± half the distance of the quartiles. The first contestant is shown with its time.
Below 1 is faster than the first contestant. A ratio tells about this machine and this
load, too: measure your own. Times of different tables, or of another run, are not to be
compared.

`, r.config.delay, 2*r.config.delay, count(r.config.rounds, "round"), r.config.slice)
}

// beforeAndNow compares with the sqlfence of -base. The result doesn't concern readers of the page, so it is only
// logged.
func (r *results) beforeAndNow(w io.Writer) {
	if r.config.base == "" {
		return
	}
	fmt.Fprintln(w, "sqlfence of this checkout beside that of -base, in the same rounds: the ratio of the times")
	for _, m := range r.measured {
		for i := range m.results {
			before := &m.results[i]
			name, ok := strings.CutSuffix(before.name, beforeSuffix)
			if !ok {
				continue
			}
			cell := "–"
			if now := m.get(name); now != nil && before.ran() {
				if ratio, ok := now.to(before, unitTime); ok {
					cell = ratio.String()
				}
			}
			fmt.Fprintf(w, "%s | %s | %s\n", m.title(), name, cell)
		}
	}
}

// chapter writes a group's text and tables.
func (r *results) chapter(b *strings.Builder, g group, plots map[string][]byte) error {
	tables := r.tables(g)
	if len(tables) == 0 {
		return nil
	}
	fmt.Fprintf(b, "## %s\n\n%s\n\n", g.title, g.text)
	for _, t := range tables {
		fmt.Fprintf(b, "### %s\n\n", t.title)
		svg, err := t.plot(g)
		if err != nil {
			return err
		}
		if svg != nil {
			name := slug(g.name+" "+t.title) + ".svg"
			plots[name] = svg
			fmt.Fprintf(b, "![%s](benchmarks/%s)\n\n", t.title, name)
		}
		first := timeRatio
		if g.absolute {
			first = absoluteTime
		}
		for _, q := range append([]quantity{first}, g.shows...) {
			t.write(b, q)
		}
		t.footnotes(b)
	}
	return nil
}

// A table is a part of a chapter.
type table struct {
	title    string
	measured []*measured
	names    []string // of the contestants
}

// tables returns the tables of a group that aren't empty.
func (r *results) tables(g group) []*table {
	var tables []*table
	for _, m := range r.measured {
		if m.group != g.name {
			continue
		}
		at := slices.IndexFunc(tables, func(t *table) bool { return t.title == m.table })
		if at < 0 {
			at = len(tables)
			tables = append(tables, &table{title: m.table})
		}
		t := tables[at]
		t.measured = append(t.measured, m)
		for _, res := range m.results {
			if !slices.Contains(t.names, res.name) && !strings.HasSuffix(res.name, beforeSuffix) {
				t.names = append(t.names, res.name)
			}
		}
	}
	return tables
}

// labels returns the labels of the measurements, without a common ending.
func (t *table) labels() []string {
	var labels []string
	for _, m := range t.measured {
		labels = append(labels, m.label())
	}
	const separator = ", "
	at := strings.LastIndex(labels[0], separator)
	if at < 0 || len(labels) == 1 || slices.ContainsFunc(labels, func(l string) bool { return !strings.HasSuffix(l, labels[0][at:]) }) {
		return labels
	}
	end := labels[0][at:]
	for i := range labels {
		labels[i] = strings.TrimSuffix(labels[i], end)
	}
	return labels
}

// write writes the table of one quantity, unless no cell has a value. Rows are contestants; with more than 8
// measurements columns are contestants.
func (t *table) write(b *strings.Builder, q quantity) {
	found := false
	cell := func(m *measured, name string) string {
		if text, ok := q.of(m, name); ok {
			found = true
			return text
		}
		return "–"
	}
	var text strings.Builder
	labels := t.labels()
	durabilities := t.durabilities()
	if len(t.measured) <= 8 {
		row(&text, append([]string{q.title}, labels...))
		line(&text, len(labels))
		for _, name := range t.names {
			cells := []string{name + durabilities[name]}
			for _, m := range t.measured {
				cells = append(cells, cell(m, name))
			}
			row(&text, cells)
		}
	} else {
		row(&text, append([]string{q.title}, t.names...))
		line(&text, len(t.names))
		for i, m := range t.measured {
			cells := []string{labels[i]}
			for _, name := range t.names {
				cells = append(cells, cell(m, name))
			}
			row(&text, cells)
		}
	}
	if found {
		fmt.Fprintf(b, "%s\n", &text)
	}
}

func row(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

func line(b *strings.Builder, columns int) {
	fmt.Fprintf(b, "|---|%s\n", strings.Repeat("---:|", columns))
}

// durabilities returns a note for each contestant if the contestants of a measurement differ in durability.
func (t *table) durabilities() map[string]string {
	said := make(map[string]string)
	for _, m := range t.measured {
		differ := false
		for _, r := range m.results {
			differ = differ || r.durability != m.results[0].durability
		}
		for _, r := range m.results {
			if differ {
				said[r.name] = " (" + r.durability + ")"
			}
		}
	}
	return said
}

// footnotes writes the durability that all contestants of a measurement share, and the contestants that didn't run.
func (t *table) footnotes(b *strings.Builder) {
	var notes []string
	note := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(notes, text) {
			notes = append(notes, text)
		}
	}
	durabilities := t.durabilities()
	for _, m := range t.measured {
		if first := m.results[0]; durabilities[first.name] == "" && first.durability != "" {
			note("Durability of %s: %s.", m.on, first.durability)
		}
	}
	for _, m := range t.measured {
		for _, r := range m.results {
			switch {
			case r.failed == nil:
			case skipped(r.failed):
				note("%s did not run on %s: %v.", r.name, m.label(), r.failed)
			default:
				note("**%s failed on %s**: %s", r.name, m.label(), strings.ReplaceAll(r.failed.Error(), "\n", " "))
			}
		}
	}
	for _, n := range notes {
		fmt.Fprintf(b, "- %s\n", n)
	}
	if len(notes) > 0 {
		b.WriteString("\n")
	}
}

// slug makes a file's name of a title.
func slug(title string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, title)
	return strings.Trim(strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == '-' }), "-"), "-")
}
