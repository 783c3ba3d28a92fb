package catalogue

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/similar"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// findRelations finds the relations of the registered names, and the ledger.
func findRelations(l *look) {
	names := []string{l.db.same(sqltext.LedgerTable)}
	for i := range l.tables {
		names = append(names, l.db.same(l.tables[i].Name))
	}
	names = slices.AppendSeq(names, maps.Keys(l.inCatalogue))
	slices.Sort(names)
	l.relations = l.db.relations(l, slices.Compact(names))
	for _, rel := range l.relations {
		if l.db.same(rel.name) != sqltext.LedgerTable {
			continue
		}
		if l.isQueried(rel) {
			l.ledgers = append(l.ledgers, rel)
		} else {
			l.others = append(l.others, rel)
		}
	}
	l.findTargets()
}

// findTargets finds the relations of the registered tables, and adds a table for each relation that matches a pattern.
func (l *look) findTargets() {
	registered := len(l.tables)
	var of []*relation
	for _, rel := range l.relations {
		if t, ok := l.covered(rel); ok {
			l.tables, of = append(l.tables, t), append(of, rel)
		}
	}
	for i := range l.tables {
		t := &l.tables[i]
		if i >= registered {
			l.targets = append(l.targets, target{t, of[i-registered]})
			continue
		}
		for _, rel := range l.named(t.Schema, t.Name) {
			l.targets = append(l.targets, target{t, rel})
		}
	}
}

func (l *look) isQueried(ledger *relation) bool {
	if l.opts.Schema != "" {
		return ledger.schema == l.opts.Schema
	}
	return ledger.visible || l.db.ownLedgers()
}

// named returns the relations of a name. Without a schema it returns the relation that the session finds, or, if the
// session finds none, the relations of all schemas: statements must then write the schema.
func (l *look) named(schema, name string) (found []*relation) {
	for _, rel := range l.relations {
		if l.db.same(rel.name) == l.db.same(name) && (schema == "" || l.db.same(rel.schema) == l.db.same(schema)) {
			found = append(found, rel)
		}
	}
	if isVisible := func(r *relation) bool { return r.visible }; schema == "" && slices.ContainsFunc(found, isVisible) {
		found = slices.DeleteFunc(found, func(r *relation) bool { return !r.visible })
	}
	return found
}

func checkNames(l *look) {
	var lost []*Table
	for i := range l.tables {
		t := &l.tables[i]
		if !slices.ContainsFunc(l.targets, func(x target) bool { return x.Table == t }) {
			lost = append(lost, t)
		}
	}
	if len(lost) == 0 {
		return
	}
	known := l.rows("the tables", l.db.tableNames(l))
	for _, t := range lost {
		l.add(t, Finding{
			Level: Fault,
			Code:  "missing-table",
			Problem: "The table " + l.spell(t.Schema, t.Name) + " doesn't exist, or this role can't see it: its " +
				"registration guards nothing.",
			Remedy: similar.Propose(t.Name, slices.Concat(known...)) + Remedies["missing-table"],
		})
	}
}

// spell returns a name for messages, with quotes only if a database would need quotes.
func (l *look) spell(schema, name string) string {
	if schema == "" {
		return l.quoteIfNeeded(name)
	}
	return l.quoteIfNeeded(schema) + "." + l.quoteIfNeeded(name)
}

// name returns a relation's name for messages, with the schema unless the session finds the relation without it.
func (l *look) name(rel *relation) string {
	if rel.visible {
		return l.spell("", rel.name)
	}
	return l.spell(rel.schema, rel.name)
}

// quoted returns a relation's name for a statement.
func (l *look) quoted(rel *relation) string {
	if rel.visible {
		return l.db.Quote(rel.name)
	}
	return l.db.Quote(rel.schema) + "." + l.db.Quote(rel.name)
}

// quoteIfNeeded returns a name for messages, in the quotes of the database unless the name is plain.
func (l *look) quoteIfNeeded(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return l.db.Quote(name)
}

var plainName = regexp.MustCompile(`^([a-z_][a-z_0-9]*)?$`)

func (db *Database) texts(list []string) string {
	written := make([]string, len(list))
	for i, s := range list {
		written[i] = db.Text(s)
	}
	return strings.Join(written, ", ")
}

// guarded returns the relations of the registered tables, each once.
func (l *look) guarded() (list []*relation) {
	for _, t := range l.targets {
		if !slices.Contains(list, t.rel) {
			list = append(list, t.rel)
		}
	}
	return list
}

// ids writes a list of relation ids, as constants. For no relations it writes an id that no relation has.
func (l *look) ids(of []*relation) string {
	list := []string{""}
	for _, rel := range of {
		list = append(list, rel.id)
	}
	return l.db.texts(list)
}

func (l *look) of(id string) (list []target) {
	for _, t := range l.targets {
		if t.rel.id == id {
			list = append(list, t)
		}
	}
	return list
}

// queried returns the relations for the catalogue queries: the registered tables and the ledgers.
func (l *look) queried() []*relation {
	of := l.guarded()
	for _, ledger := range l.ledgers {
		if !slices.Contains(of, ledger) {
			of = append(of, ledger)
		}
	}
	return of
}

// relation returns the relation with an id. For an unknown id it returns an empty relation, which no check reads.
func (l *look) relation(id string) *relation {
	if i := slices.IndexFunc(l.relations, func(rel *relation) bool { return rel.id == id }); i >= 0 {
		return l.relations[i]
	}
	return new(relation)
}
