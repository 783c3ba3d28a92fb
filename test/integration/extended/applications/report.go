package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// A report is what all runs of one application came to.
type report struct {
	workspace *workspace
	modes     map[string]*result
	cpu       map[string][]time.Duration
}

// measure runs the tests in each mode, then, to measure the time, several times by turns in
// those whose time is told.
func (w *workspace) measure(source string, runs int) (report, error) {
	r := report{w, map[string]*result{}, map[string][]time.Duration{}}
	if err := w.make(source); err != nil {
		return r, err
	}
	if err := w.build(); err != nil {
		return r, err
	}
	for _, mode := range modes {
		var err error
		if r.modes[mode], err = w.run(mode, false); err != nil {
			return r, err
		}
	}
	for range runs {
		for _, mode := range modes {
			if strings.HasPrefix(mode, "stale") {
				continue
			}
			got, err := w.run(mode, true)
			if err != nil {
				return r, err
			}
			r.cpu[mode] = append(r.cpu[mode], got.cpu)
		}
	}
	return r, nil
}

// faults are what isn't as it should be.
func (r report) faults() []string {
	var faults []string
	alone := r.modes["alone"]
	for _, mode := range []string{"unregistered", "row", "ledger"} {
		for name := range r.modes[mode].failed {
			if !alone.failed[name] && (mode != "row" || !r.workspace.app.listsColumns(name)) {
				faults = append(faults, mode+": "+name+" fails")
			}
		}
		for name := range alone.passed {
			if !r.modes[mode].passed[name] && !r.modes[mode].failed[name] {
				faults = append(faults, mode+": "+name+" doesn't run")
			}
		}
	}
	for _, mode := range []string{"stale-row", "stale-ledger"} {
		events := r.modes[mode].events
		if n := events["changed"]; n > 0 {
			faults = append(faults, fmt.Sprintf("%s: the tables have changed (%d times seen)", mode, n))
		}
		if n := events["late landed"]; n > 0 {
			faults = append(faults, fmt.Sprintf("%s: late writes have passed (%d)", mode, n))
		}
		if n := events["error"]; n > 0 {
			faults = append(faults, fmt.Sprintf("%s: the tables couldn't be compared (%d times)", mode, n))
		}
		if events["same"] == 0 || events["late refused stale"] == 0 {
			faults = append(faults, mode+": nothing was refused")
		}
	}
	slices.Sort(faults)
	return faults
}

// print prints the report, and reports whether there are faults.
func (r report) print(to io.Writer) bool {
	app := r.workspace.app
	fmt.Fprintf(to, "%s %s: %d lines changed\n", app.module, app.version, r.workspace.changed)
	for _, mode := range modes {
		m := r.modes[mode]
		fmt.Fprintf(to, "  %-13s %4d passed %4d failed, %v\n", mode, len(m.passed), len(m.failed), r.cpu[mode])
		for _, kind := range slices.Sorted(maps.Keys(m.events)) {
			fmt.Fprintf(to, "    %6d %s\n", m.events[kind], kind)
		}
		for i, text := range slices.Sorted(maps.Keys(m.refusals)) {
			if i < 20 {
				fmt.Fprintf(to, "      %d x %.600s\n", m.refusals[text], text)
			}
		}
	}
	faults := r.faults()
	for _, fault := range faults {
		fmt.Fprintln(to, "  FAULT:", fault)
	}
	return len(faults) > 0
}

// sum adds the events of these kinds.
func (m *result) sum(kinds ...string) (n int) {
	for kind, count := range m.events {
		if slices.ContainsFunc(kinds, func(k string) bool { return strings.HasPrefix(kind, k) }) {
			n += count
		}
	}
	return n
}

func writeTable(path string, all []report) error {
	var b strings.Builder
	b.WriteString(head)
	for _, r := range all {
		r.writeTo(&b)
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

func (r report) writeTo(b *strings.Builder) {
	app, alone := r.workspace.app, r.modes["alone"]
	fmt.Fprintf(b, "\n## %s\n\n`%s@%s`, %s. %d lines changed. Registered: `%s`. Tests: `%s`, %d pass and %d fail alone.",
		app.name, app.module, app.version, app.database, r.workspace.changed, strings.Join(app.tables, "`, `"), app.tests, len(alone.passed), len(alone.failed))
	if app.note != "" {
		b.WriteString(" " + app.note)
	}
	if n := len(r.modes["row"].failed) - len(alone.failed); n > 0 {
		fmt.Fprintf(b, " By RowFence %d fail because they compare a table's columns with a list of their own.", n)
	}
	b.WriteString("\n\n| | tests that pass | statements | guarded | refused | CPU time, alone = 1 |\n|---|---|---|---|---|---|\n")
	for _, mode := range []string{"unregistered", "row", "ledger"} {
		m := r.modes[mode]
		fmt.Fprintf(b, "| %s | %d of %d | %d | %d | %d | %s |\n", titles[mode], len(m.passed), len(alone.passed),
			m.sum("guarded", "passed", "refused", "unfenced"), m.sum("guarded"), m.sum("refused"), r.ratio(mode))
	}
	b.WriteString("\n| superseded | databases | late writes refused | content the same | changed | late and guarded, but no row met | rows of its own written |\n|---|---|---|---|---|---|---|\n")
	for _, mode := range []string{"stale-row", "stale-ledger"} {
		e := r.modes[mode].events
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %d | %d |\n", titles[mode],
			e["superseded"], e["late refused stale"], e["same"], e["changed"], e["late passed without rows"], e["late passed with rows"])
	}
}

// ratio returns the median of the rounds' ratios, with the lowest and the highest.
func (r report) ratio(mode string) string {
	var all []float64
	for i, fenced := range r.cpu[mode] {
		all = append(all, float64(fenced)/float64(r.cpu["alone"][i]))
	}
	if len(all) == 0 {
		return "–"
	}
	slices.Sort(all)
	return fmt.Sprintf("%.2f (%.2f to %.2f)", all[len(all)/2], all[0], all[len(all)-1])
}

var titles = map[string]string{"unregistered": "nothing registered", "row": "RowFence", "ledger": "Ledger", "stale-row": "RowFence", "stale-ledger": "Ledger"}
