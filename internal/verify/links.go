package verify

import (
	"fmt"
	"strings"
)

// What a link is called, and what to do about it.
var linkTexts = map[string]struct{ problem, remedy string }{
	"view": {
		"The view %[2]s can be written, and its rows are those of table %[1]s: a write that names the view carries no token.",
		"Register the view as well, with the same Resource, or seal the table, or take away the privileges to write to the view.",
	},
	"rule": {
		"The rule %[3]s of %[2]s writes to table %[1]s: such a write carries no token.",
		"Replace it by statements of the application, or seal the table.",
	},
	"own-rule": {
		"Table %[1]s has the rule %[3]s, which makes other statements of its writes.",
		"Write a trigger in its place: rules don't see the guard, and fail with Ledger.",
	},
	"cascade": {
		"A foreign key of table %[1]s is declared %[3]s: a write to %[2]s changes or deletes rows of %[1]s without a token.",
		"Declare it with NO ACTION, and let the application write both tables, or seal the table.",
	},
	"foreign-table": {
		"Behind %[1]s there is the foreign table %[2]s, whose rows are another server's: what is written there passes neither a guard nor a seal.",
		"Let the table that it stands for be fenced and sealed where it is.",
	},
	"subscription": {
		"The subscription %[3]s writes to table %[1]s: its writes carry no token, and a seal lets them pass.",
		"Let the table be fenced where its rows come from, and written there alone.",
	},
	"partition": {
		"Table %[1]s has the %[3]s %[2]s, not registered: a write by such a name reaches the same rows without a token.",
		"Register what is written by that name as well, with the same Resource, or seal the table, or take away the privileges to write there.",
	},
}

// checkLinks reports the ways by which rows can be written under another name.
func checkLinks(l *look) error {
	of := l.guarded()
	if len(of) == 0 {
		return nil
	}
	links, err := l.db.links(l, of)
	if err != nil {
		return err
	}
	type many struct {
		t     target
		first link
		names []string
	}
	var grouped []*many
	for _, x := range links {
		for _, t := range l.of(x.id) {
			if x.name != "" && l.registered(x.schema, x.name) && x.code != "cascade" && x.code != "own-rule" {
				continue
			}
			i := len(grouped) - 1
			if name := l.nameOf(x.schema, x.name); i >= 0 && x.code == "partition" && grouped[i].t == t && grouped[i].first.detail == x.detail {
				grouped[i].names = append(grouped[i].names, name)
			} else {
				grouped = append(grouped, &many{t, x, []string{name}})
			}
		}
	}
	for _, m := range grouped {
		l.addLink(m.t, m.first, m.names)
	}
	return nil
}

// addLink adds the finding of a link; those of several partitions are told together.
func (l *look) addLink(t target, x link, names []string) {
	const shown = 5
	other, detail := strings.Join(names[:min(len(names), shown)], ", "), x.detail
	if more := len(names) - shown; more > 0 {
		other += fmt.Sprintf(" and %d more", more)
	}
	if x.code == "partition" && len(names) > 1 {
		detail += "s"
	}
	texts := linkTexts[x.code]
	f := Finding{Severity: Warning, Code: x.code, Remedy: texts.remedy}
	if x.code == "own-rule" {
		f.Code = "rule"
	}
	f.Problem = fmt.Sprintf(texts.problem+"%.0[2]s%.0[3]s", l.name(t.rel), other, detail)
	if x.code == "cascade" && l.registered(x.schema, x.name) {
		f.Severity = Note
		f.Problem += " That table is registered, too."
	}
	l.sealed(t, &f)
	l.add(t.Table, f)
}

// registered reports whether a table, or something else, is registered by its name.
func (l *look) registered(schema, name string) bool {
	for i := range l.tables {
		t := &l.tables[i]
		if l.db.same(t.Name) == l.db.same(name) && (t.Schema == "" || l.db.same(t.Schema) == l.db.same(schema)) {
			return true
		}
	}
	return false
}

// nameOf writes a name with its schema, unless that is where names without one are looked for.
func (l *look) nameOf(schema, name string) string {
	if schema == "" {
		return l.spell("", name)
	}
	for _, rel := range l.relations {
		if rel.visible && rel.schema == schema {
			return l.spell("", name)
		}
	}
	return l.spell(schema, name)
}

// sealed makes a Note of a finding about a way around sqlfence that the database has closed.
func (l *look) sealed(t target, f *Finding) {
	if !t.rel.sealed || f.Code == "cascade" && !l.db.cascadesFire() || f.Code == "foreign-table" || f.Code == "subscription" {
		return
	}
	f.Severity = Note
	f.Remedy = "The table is sealed, so that such a write is refused; let the application write in its place."
}
