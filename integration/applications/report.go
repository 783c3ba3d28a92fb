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

// measure runs the tests in each mode, and those whose time is told several times, by turns.
func (w *workspace) measure(runs int) (report, error) {
	r := report{w, map[string]*result{}, map[string][]time.Duration{}}
	if err := w.build(); err != nil {
		return r, err
	}
	for i := range runs {
		for _, mode := range modes {
			if i > 0 && (mode == "unregistered" || strings.HasPrefix(mode, "stale")) {
				continue
			}
			got, err := w.run(mode)
			if err != nil {
				return r, err
			}
			if r.modes[mode] == nil {
				r.modes[mode] = got
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
			if !alone.failed[name] {
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

func median(all []time.Duration) time.Duration { return slices.Sorted(slices.Values(all))[len(all)/2] }

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
		app, alone := r.workspace.app, r.modes["alone"]
		fmt.Fprintf(&b, "\n## %s\n\n`%s@%s`, %s. %d lines changed. Registered: `%s`. Tests: `%s`, %d of which pass and %d fail alone.\n\n",
			app.name, app.module, app.version, app.database, r.workspace.changed, strings.Join(app.tables, "`, `"), app.tests, len(alone.passed), len(alone.failed))
		b.WriteString("| | tests that pass | statements | guarded | refused | CPU time, alone = 1 |\n|---|---|---|---|---|---|\n")
		for _, mode := range []string{"unregistered", "row", "ledger"} {
			m := r.modes[mode]
			ratio := "–"
			if len(r.cpu[mode]) > 1 {
				ratio = fmt.Sprintf("%.2f", float64(median(r.cpu[mode]))/float64(median(r.cpu["alone"])))
			}
			fmt.Fprintf(&b, "| %s | %d of %d | %d | %d | %d | %s |\n", titles[mode], len(m.passed), len(alone.passed),
				m.sum("guarded", "passed", "refused", "unfenced"), m.sum("guarded"), m.sum("refused"), ratio)
		}
		b.WriteString("\n| superseded | databases | late writes refused | other late statements guarded | content the same | changed |\n|---|---|---|---|---|---|\n")
		for _, mode := range []string{"stale-row", "stale-ledger"} {
			e := r.modes[mode].events
			fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", titles[mode], e["superseded"], e["late refused stale"], e["late guarded"], e["same"], e["changed"])
		}
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

var titles = map[string]string{"unregistered": "nothing registered", "row": "RowFence", "ledger": "Ledger", "stale-row": "RowFence", "stale-ledger": "Ledger"}
