package drivers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// An ormTable is the table "orms" of docs/compatibility.md.
type ormTable struct {
	cells map[string]map[string][]string // operation, ORM: verdict and driver
	ran   map[string]bool                // ORM and driver
}

func newORMTable() *ormTable {
	return &ormTable{make(map[string]map[string][]string), make(map[string]bool)}
}

func (f *ormTable) add(o orm, b base, op ormOperation, verdict string) {
	if f.cells[op.name] == nil {
		f.cells[op.name] = make(map[string][]string)
	}
	f.ran[o.name+" "+b.name] = true
	if cell := f.cells[op.name][o.name]; !slices.Contains(cell, verdict) {
		f.cells[op.name][o.name] = append(cell, verdict)
	}
}

// complete tells whether every ORM ran on all of its drivers.
func (f *ormTable) complete() bool {
	for _, o := range orms {
		for _, b := range o.bases {
			if !f.ran[o.name+" "+b] {
				return false
			}
		}
	}
	return true
}

func (f *ormTable) markdown(t *testing.T) string {
	var out strings.Builder
	line := func(title string, cell func(orm) string) {
		out.WriteString("| " + title + " |")
		for _, o := range orms {
			out.WriteString(" " + cell(o) + " |")
		}
		out.WriteString("\n")
	}
	line("", func(o orm) string { return o.name })
	line("---", func(orm) string { return "---" })
	line("modules", func(o orm) string {
		find := version
		if o.versions != nil {
			find = o.versions
		}
		var all []string
		for _, m := range o.modules {
			all = append(all, fmt.Sprintf("%s %s", m, find(t, m)))
		}
		return strings.Join(all, "<br>")
	})
	line("drivers", func(o orm) string { return strings.Join(o.bases, ", ") })
	for _, op := range ormOperations {
		line(op.name, func(o orm) string { return strings.Join(f.cells[op.name][o.name], ", ") })
	}
	out.WriteString(ormNotes)
	return out.String()
}
