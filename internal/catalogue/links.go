package catalogue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A link lets rows of a relation be written by a statement that doesn't name the relation.
type link struct {
	kind, id     string // kind is a key of linkTexts, id identifies the relation
	schema, name string // the name of the other object
	detail       string // the detail of the other object that the problem mentions
}

// linkTexts has the code, problem and remedy of each kind of [link]. pierces is true if even the seal of a sealed table
// doesn't stop the writes of the link.
var linkTexts = map[string]struct {
	code, problem, remedy string
	pierces               bool
}{
	"view": {code: "other-name",
		problem: "The view %[2]s can be written, and its rows are those of table %[1]s: a write that names the view " +
			"carries no token."},
	"namesake": {code: "other-name",
		problem: "The view %[2]s has the name of table %[1]s and shows its rows: where a session finds the view by " +
			"that name, guarded writes are refused, or, on a connection that is older than the view, compared with " +
			"its columns.",
		remedy: "Give the view another name, or write the table's schema in every statement."},
	"partition": {code: "other-name",
		problem: "Table %[1]s has the %[3]s %[2]s, not registered with its Resource: a write by such a name " +
			"reaches the same rows without the table's token."},
	"rule": {code: "side-effect",
		problem: "The rule %[3]s of %[2]s writes to table %[1]s: such a write carries no token."},
	"own rule": {code: "side-effect",
		problem: "Table %[1]s has the rule %[3]s, which makes other statements of its writes.",
		remedy:  "Write a trigger in its place: rules don't see the guard, and fail with Ledger."},
	"cascade": {code: "side-effect",
		problem: "A foreign key of table %[1]s is declared %[3]s: a write to %[2]s changes or deletes rows of %[1]s " +
			"without a token.",
		remedy: "Declare it with NO ACTION, and let the application write both tables, or seal the table."},
	"subscription": {code: "side-effect", pierces: true,
		problem: "The subscription %[3]s writes to table %[1]s: its writes carry no token, and a seal lets them pass.",
		remedy:  "Let the table be fenced where its rows come from, and written there alone."},
	"foreign table": {code: "storage", pierces: true,
		problem: "Behind %[1]s there is the foreign table %[2]s, and its rows are on another server: no guard and no " +
			"seal checks the writes there.",
		remedy: "Let the table that it stands for be fenced and sealed where it is."},
}

func readLink(l *look, r []string) {
	l.links = append(l.links, link{r[0], r[1], r[2], r[3], strings.TrimSpace(r[4])})
}

// A view is a writable view, with the tables of its query.
type view struct {
	schema, name string
	from         []relationName
}

// hearView adds a view, from its schema, name and query. The query is empty if the role may not see it.
func hearView(l *look, r []string) {
	if r[2] == "" {
		l.hiddenViews++
	}
	l.views = append(l.views, view{r[0], r[1], l.db.text(r[2]).from()})
}

// viewsOf returns the links of the views that show rows of a relation, directly or through views. A table counts only
// if it is in the FROM of the view's query, not in a condition.
func (l *look) viewsOf(rel *relation) (links []link) {
	reached := []relationName{{l.db.same(rel.schema), l.db.same(rel.name)}}
	for i := 0; i < len(reached); i++ {
		selects := func(n relationName) bool {
			return n.name == reached[i].name && (n.schema == "" || n.schema == reached[i].schema)
		}
		for _, v := range l.views {
			as := relationName{l.db.same(v.schema), l.db.same(v.name)}
			if !slices.Contains(reached, as) && slices.ContainsFunc(v.from, selects) {
				reached = append(reached, as)
				kind := "view"
				if as.name == l.db.same(rel.name) {
					kind = "namesake"
				}
				links = append(links, link{kind, rel.id, v.schema, v.name, ""})
			}
		}
	}
	return links
}

// checkLinks reports the ways to write rows under another name. The partitions of a table are one finding.
func checkLinks(l *look) {
	if l.hiddenViews > 0 {
		l.noteDenied("what some views select", strconv.Itoa(l.hiddenViews)+" of them")
	}
	var links []link
	for _, rel := range l.guarded() {
		links = append(links, l.viewsOf(rel)...)
	}
	links = append(links, l.links...)
	for i, x := range links {
		if x.kind == "partition" && i > 0 && links[i-1].like(x) {
			continue
		}
		for _, t := range l.of(x.id) {
			registered := x.name != "" && l.registered(x.schema, x.name)
			if names := l.linkNames(t, x, links[i:], registered); len(names) > 0 {
				l.addLink(t, x, names, registered)
			}
		}
	}
}

// linkNames returns the names that the finding about a link mentions; none if the link needs no finding.
func (l *look) linkNames(t target, x link, links []link, registered bool) []string {
	switch {
	case x.kind == "partition":
		return l.otherParts(t, x, links)
	case !registered, x.kind == "cascade", x.kind == "own rule",
		x.kind == "namesake" && l.db.refusesViews.Is() && len(l.uses(t)) > 0:
		return []string{l.nameOf(x.schema, x.name)}
	}
	return nil
}

// otherParts returns the names of the links like x (partitions, child tables or parent tables of t) that aren't
// registered with t's resource. A write that names such a part presents no token of t, but reaches the same rows.
func (l *look) otherParts(t target, x link, links []link) (names []string) {
	for _, other := range links {
		shares := func(u Table) bool { return u.Resource == t.Resource && l.names(&u, other.schema, other.name) }
		if other.like(x) && !slices.ContainsFunc(l.tables, shares) {
			names = append(names, l.nameOf(other.schema, other.name))
		}
	}
	return names
}

// like reports whether two links connect one table to parts of one kind.
func (x link) like(y link) bool { return x.kind == y.kind && x.id == y.id && x.detail == y.detail }

func (l *look) addLink(t target, x link, names []string, registered bool) {
	texts := linkTexts[x.kind]
	if x.kind == "partition" && len(names) > 1 {
		x.detail += "s"
	}
	f := Finding{Level: Warning, Code: texts.code, Remedy: texts.remedy}
	f.Problem = fmt.Sprintf(texts.problem+"%.0[2]s%.0[3]s", l.name(t.rel), firstOf(names), x.detail)
	if x.kind == "cascade" && registered {
		f.Level = Note
		f.Problem += " That table is registered, too."
	}
	if !texts.pierces && (x.kind != "cascade" || !l.db.silentCascades.Is()) {
		f = l.sealed(t, f)
	}
	l.add(t.Table, f)
}

// sealed makes a Note of a finding about a way around sqlfence that the database has closed.
func (l *look) sealed(t target, f Finding) Finding {
	if t.rel.sealed {
		f.Level = Note
		f.Remedy = "The table is sealed, so that such a write is refused; let the application write in its place."
	}
	return f
}

func (l *look) registered(schema, name string) bool {
	return slices.ContainsFunc(l.tables, func(t Table) bool { return l.names(&t, schema, name) })
}

func (l *look) names(t *Table, schema, name string) bool {
	return l.db.same(t.Name) == l.db.same(name) && (t.Schema == "" || l.db.same(t.Schema) == l.db.same(schema))
}

// nameOf writes a name with its schema, or without if the session finds the schema's relations unqualified.
func (l *look) nameOf(schema, name string) string {
	for _, rel := range l.relations {
		if rel.visible && rel.schema == schema {
			return l.spell("", name)
		}
	}
	return l.spell(schema, name)
}

func firstOf(names []string) string {
	const shown = 5
	list := strings.Join(names[:min(len(names), shown)], ", ")
	if more := len(names) - shown; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}
