package orm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// An ormTable is the section "orms" of docs/data/compatibility.md: the tables in ormTables, and notes.
type ormTable struct {
	cells map[[2]string]*ormCell // by operation and ORM
	ran   map[[2]string]bool     // by ORM and driver
}

// An ormCell holds the verdicts on one operation of one ORM, and the drivers with each verdict.
type ormCell struct{ verdicts, drivers []string }

func newORMTable() *ormTable {
	return &ormTable{make(map[[2]string]*ormCell), make(map[[2]string]bool)}
}

func (f *ormTable) add(o orm, b harness.Base, op ormOperation, verdict string) {
	at := [2]string{op.name, o.name}
	if f.cells[at] == nil {
		f.cells[at] = new(ormCell)
	}
	cell := f.cells[at]
	i := slices.Index(cell.verdicts, verdict)
	if i < 0 {
		cell.verdicts = append(cell.verdicts, verdict)
		cell.drivers = append(cell.drivers, b.Name)
	} else {
		cell.drivers[i] += ", " + b.Name
	}
}

// String returns one verdict if all drivers have the same, otherwise the verdicts by driver.
func (c *ormCell) String() string {
	if len(c.verdicts) == 1 {
		return c.verdicts[0]
	}
	var all []string
	for i, verdict := range c.verdicts {
		all = append(all, c.drivers[i]+": "+verdict)
	}
	return strings.Join(all, "; ")
}

// complete reports whether every ORM ran on all of its drivers.
func (f *ormTable) complete() bool {
	for _, o := range slices.Concat(ormTables...) {
		for _, b := range o.bases {
			if !f.ran[[2]string{o.name, b}] {
				return false
			}
		}
	}
	return true
}

func (f *ormTable) markdown(t *testing.T) string {
	var out strings.Builder
	for i, orms := range ormTables {
		if i > 0 {
			out.WriteString("\n")
		}
		f.write(t, &out, orms)
	}
	out.WriteString(ormNotes)
	return out.String()
}

func (f *ormTable) write(t *testing.T, out *strings.Builder, orms []orm) {
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
		find := harness.ModuleVersion
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
	page := out
	out = new(strings.Builder)
	for _, op := range ormOperations {
		line(op.name, func(o orm) string { return f.cells[[2]string{op.name, o.name}].String() })
	}
	page.WriteString(harness.JoinLines(out.String()))
}
