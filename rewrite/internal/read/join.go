package read

import "github.com/sqlfence/sqlfence/internal/sql/lex"

// A Join says how the tables of MySQL's UPDATE or DELETE are joined.
type Join struct {
	On      []lex.Span // the conditions behind ON
	Outer   bool       // LEFT or RIGHT JOIN
	Columns bool       // NATURAL JOIN or USING: there are conditions that don't show

	// Another table of the statement has the target's name or alias, if not for the case of
	// letters or its schema.
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
		t.i-- // ON without a condition: what reads on finds it there
		return false
	}
	t.spans = append(t.spans, span(lo, t.i))
	return true
}

// joinWords steps over the words that join two tables, if they come next.
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

// visible is what a table is called in its statement.
func (table *Target) visible() string {
	if table.Alias != "" {
		return table.Alias
	}
	return table.Name
}

// sameName reports whether another table is called as one of them, as far as names that are
// folded show.
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
