package read

import (
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
)

// A source holds the tables, queries and functions from which MySQL's UPDATE or DELETE takes its rows.
type source struct {
	tables []Target // the named tables
	joined bool     // the tables are joined, with each other or with a query, or stand in brackets
	join   Join
	others []string // aliases of the queries and functions
}

// tables reads the tables of an UPDATE or DELETE, up to the next clause.
func (t blocks) tables() (from source, ok bool) {
	from.tables = t.joined[:0]
	first := len(t.ranges)
	ok = t.tableList(&from)
	t.joined = from.tables
	from.join.On = t.ranges[first:len(t.ranges):len(t.ranges)]
	return from, ok && len(from.tables) > 0
}

// tableList parses joined tables.
//
//	table [[NATURAL] [INNER | CROSS | {LEFT | RIGHT} [OUTER]] JOIN | STRAIGHT_JOIN | ,] table
//	[ON condition | USING (columns)] ...
func (t blocks) tableList(from *source) bool {
	for {
		if !t.table(from) {
			return false
		}
		for t.joinCondition(&from.join) {
		}
		if !t.acceptPunct(',') && !t.joinWords(&from.join) {
			return true
		}
		from.joined = true
	}
}

// table reads one table of the list.
//
//	name [PARTITION (...)] [[AS] alias] [{USE | FORCE | IGNORE} {INDEX | KEY} [FOR ...] (...)] ...
//	(tables) | [LATERAL] (query) [AS] alias [(columns)] | function(...) [AS] alias
func (t blocks) table(from *source) bool {
	lateral := t.accept("lateral")
	switch {
	case t.i >= t.stop:
		return false
	case t.tok().Is('(') && !lateral && !t.beginsQuery():
		from.joined = true
		stop, ok := t.enter()
		if !ok {
			return false
		}
		ok = t.tableList(from) && t.i == t.stop
		t.leave(stop)
		return ok
	case t.tok().Is('('), t.tok().Kind == lex.Word && t.peek(1).Is('('):
		from.joined = true
		if !t.tok().Is('(') {
			t.i++
		}
		t.i = t.Skip(t.i)
		alias, ok := t.tableAlias()
		from.others = append(from.others, alias)
		if t.tok().Is('(') {
			t.i = t.Skip(t.i)
		}
		return ok
	}
	return t.namedTable(from)
}

// beginsQuery reports whether the bracket that is next holds a query.
func (t blocks) beginsQuery() bool {
	i := t.i
	for t.Tokens[i].Is('(') {
		i++
	}
	return t.isWord(&t.Tokens[i], "select", "with", "values", "table")
}

// maxTables is the largest number of tables in a join: MAX_TABLES of MySQL and MariaDB.
const maxTables = 61

func (t blocks) namedTable(from *source) bool {
	if len(from.tables) == maxTables {
		return false
	}
	table := Target{At: int32(t.i)}
	var ok bool
	if table.Schema, table.Name, t.i, ok = t.grammar.Lex.QualifiedName(t.Src, t.Tokens, t.i); !ok {
		return false
	}
	table.NameAt = int32(t.i - 1)
	t.partition()
	if table.Alias, ok = t.tableAlias(); !ok {
		return false
	}
	if table.Alias != "" {
		table.AliasAt = int32(t.i - 1)
	}
	t.partition() // in MySQL's DELETE
	for t.isWord(t.tok(), "use", "force", "ignore") && t.isWord(t.peek(1), "index", "key") {
		t.i += 2
		if t.accept("for") && !t.accept("join") && !t.accept("order", "by") && !t.accept("group", "by") {
			return false
		}
		if !t.tok().Is('(') {
			return false
		}
		t.i = t.Skip(t.i)
	}
	from.tables = append(from.tables, table)
	return true
}

// partition steps over PARTITION (name, ...).
func (t blocks) partition() {
	if t.isWord(t.tok(), "partition") && t.peek(1).Is('(') {
		t.i = t.Skip(t.i + 1)
	}
}

// tableAlias reads an optional [AS] alias. The words that may follow a table are reserved, except RETURNING.
func (t blocks) tableAlias() (alias string, ok bool) {
	switch tok := t.tok(); {
	case t.i >= t.stop:
		return "", true
	case t.accept("as"):
	case tok.Kind == lex.Quoted,
		tok.Kind == lex.Word && !t.endsTable() && !t.isWord(tok, "use", "force", "ignore", "partition", "for",
			"group", "having", "union", "with"):
	default:
		return "", true
	}
	alias, ok = t.Name(t.i)
	t.step(1)
	return alias, ok && alias != ""
}

// endsTable reports whether the next token follows a table or the condition of a join.
func (t blocks) endsTable() bool {
	tok := t.tok()
	return tok.Is(',') || t.isWord(tok, "join", "inner", "cross", "natural", "straight_join", "on", "using",
		"set", "where", "order", "limit", "returning") ||
		t.isWord(tok, "left", "right") && t.isWord(t.peek(1), "join", "outer")
}

// deletesMultiTable reports whether the tokens after DELETE FROM are the table names before USING.
func (t blocks) deletesMultiTable() bool {
	_, _, next, _ := t.grammar.Lex.QualifiedName(t.Src, t.Tokens, t.i)
	behind := &t.Tokens[next]
	return behind.Is(',') || behind.Is('*') || t.isWord(behind, "using")
}

// deletedNames reads the names before FROM or USING in a DELETE: name[.*], ...
func (t blocks) deletedNames() (names []Target, ok bool) {
	for {
		n := Target{At: int32(t.i), NameAt: int32(t.i)}
		if n.Name, ok = t.Name(t.i); !ok {
			return nil, false
		}
		for t.i++; t.acceptPunct('.') && !t.acceptPunct('*'); t.i++ {
			n.Schema, n.NameAt = n.Name, int32(t.i)
			if n.Name, ok = t.Name(t.i); !ok {
				return nil, false
			}
		}
		names = append(names, n)
		if !t.acceptPunct(',') {
			return names, true
		}
	}
}

// called reports whether a name in the statement may mean this table.
func (table *Target) called(schema, name string) bool {
	if table.Alias != "" {
		return name == table.Alias
	}
	return name == table.Name && (schema == "" || table.Schema == "" || schema == table.Schema)
}

// resolve returns the tables of the statement that the names mean. ok is false if a name means none of them: the token
// may be no name, as HISTORY in MariaDB.
func (from *source) resolve(names []Target) (tables []Target, ok bool) {
	for _, n := range names {
		before := len(tables)
		for _, table := range from.tables {
			if table.called(n.Schema, n.Name) {
				tables = append(tables, table)
			}
		}
		if len(tables) == before {
			return nil, false
		}
	}
	return tables, true
}

// writesTo adds the writes of an UPDATE or DELETE to its targets, and reads the clauses that the targets share. An
// UPDATE of several tables writes to each table with an assigned column.
func (t blocks) writesTo(head *Write, from source, targets []Target) {
	t.claim(int(head.At))
	head.Joined = from.joined
	t.mysqlClauses(head)
	t.finish(head)
	for i := range targets {
		w := *head
		if w.Joined && !w.Set.Empty() {
			assigned, at := t.assigned(head.Set.Items, &targets[i], from)
			if !assigned {
				continue
			}
			if at >= 0 {
				w.Failure = Failure{advise.UnclearTable, at}
			}
		}
		t.part(WritePart, int(w.At), int(w.At))
		t.Parts[len(t.Parts)-1].Write = int32(len(t.Writes))
		w.Depth, w.Target = int32(t.depth), targets[i]
		w.Join = from.join
		w.Join.SameName = from.sameName(&targets[i])
		*t.newWrite() = w
	}
	clear(t.joined)
}

// assigned reports whether a SET list assigns, or may assign, a column of a table. at is the first item that doesn't
// show its table, or -1. If there is only one table, a column without a table's name belongs to this table, because
// columns of queries and functions can't be assigned.
func (t blocks) assigned(items []Assignment, table *Target, from source) (assigned bool, at int32) {
	at = -1
	for _, a := range items {
		var schema, name string
		if a.Names.Lo > a.Lo+1 {
			name, _ = t.Name(int(a.Names.Lo) - 2)
		}
		if a.Names.Lo > a.Lo+3 {
			schema, _ = t.Name(int(a.Names.Lo) - 4)
		}
		only := name == "" && len(from.tables) == 1
		clear := only
		for i := range from.tables {
			clear = clear || name != "" && from.tables[i].called(schema, name)
		}
		switch {
		case only, clear && table.called(schema, name):
			assigned = true
		case !clear && at < 0:
			at = a.Lo
		}
	}
	return assigned || at >= 0, at
}

// A Join describes how the tables of MySQL's UPDATE or DELETE are joined.
type Join struct {
	On      []lex.Range // the conditions after ON
	Outer   bool        // there is a LEFT or RIGHT JOIN
	Columns bool        // there is a NATURAL JOIN or USING, with conditions that the text doesn't show

	// Another table of the statement has the target's name or alias, ignoring the case of letters and the schema.
	SameName bool
}

// joinCondition steps over ON or USING, if it comes next.
func (t blocks) joinCondition(join *Join) bool {
	switch {
	case t.isWord(t.tok(), "using") && t.peek(1).Is('('):
		join.Columns = true
		t.i = t.Skip(t.i + 1)
		return true
	case !t.accept("on"):
		return false
	}
	lo := t.i
	for t.i < t.stop && (t.tok().Label || !t.endsTable()) {
		t.i = t.Skip(t.i)
	}
	if t.i == lo {
		t.i-- // ON without a condition: the caller fails at ON
		return false
	}
	t.ranges = append(t.ranges, rangeOf(lo, t.i))
	return true
}

// joinWords skips the words that join two tables, if the words come next.
func (t blocks) joinWords(join *Join) bool {
	if t.accept("straight_join") {
		return true
	}
	begin, before := t.i, *join
	if t.accept("natural") {
		join.Columns = true
	}
	if t.accept("left") || t.accept("right") {
		join.Outer = true
		t.accept("outer")
	} else if !t.accept("inner") {
		t.accept("cross")
	}
	if t.accept("join") {
		return true
	}
	t.i, *join = begin, before
	return false
}

// visible returns the table's name in the rest of the statement: its alias, or else its name.
func (table *Target) visible() string {
	if table.Alias != "" {
		return table.Alias
	}
	return table.Name
}

// sameName reports whether another table of the statement has the same visible name. It compares normalised names.
func (from *source) sameName(table *Target) bool {
	n := 0
	for i := range from.tables {
		if from.tables[i].visible() == table.visible() {
			n++
		}
	}
	for _, name := range from.others {
		if name == table.visible() {
			n++
		}
	}
	return n > 1
}
