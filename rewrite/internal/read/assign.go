package read

import "github.com/sqlfence/sqlfence/internal/sql/lex"

// Assigns reports whether an item of a SET list assigns the column: column = ..., or
// (column, column[subscript]) = ...
func (t *Text) Assigns(a Assignment, column string) bool {
	for i, hi := int(a.Names.Lo), int(a.Names.Hi); i < hi; i = t.ItemEnd(i, hi) + 1 {
		if name, ok := t.Name(i); ok && name == column {
			return true
		}
	}
	return false
}

// PlainValue returns the value of an item of the form column = value, and an empty range for any other item.
func (t *Text) PlainValue(a Assignment) lex.Range {
	equals := a.Names.Hi
	if t.grammar.QualifiedSet.Is() && t.Tokens[equals].Is(':') {
		equals++
	}
	if equals+1 >= a.Hi || t.Tokens[a.Lo].Is('(') || !t.Tokens[equals].Is('=') {
		return lex.Range{Lo: a.Hi, Hi: a.Hi}
	}
	return lex.Range{Lo: equals + 1, Hi: a.Hi}
}

// Value returns the value that an item of a SET list assigns to the column; ok is false if the text doesn't show it.
//
//	column = value
//	(column, ...) = [ROW] (value, ...)
func (t *Text) Value(a Assignment, column string) (value lex.Range, ok bool) {
	i, end := int(a.Lo), int(a.Hi)
	place, columns, equals := 0, 1, int(a.Names.Hi)
	list := t.Tokens[i].Is('(')
	if list {
		if place, columns, ok = t.placeOf(a.Names, column); !ok {
			return lex.Range{}, false
		}
		equals = int(t.Tokens[i].Mate) + 1
	}
	lo := int(t.afterEquals(int32(equals)))
	if lo == 0 || lo >= end { // the item assigns only a part of the column, such as column[1]
		return lex.Range{}, false
	}
	if !list || columns == 1 && !t.grammar.RowKeyword.Is() {
		return rangeOf(lo, end), true
	}
	return t.rowValue(lo, end, place, columns)
}

// afterEquals returns the token after the equals sign at i, or 0 without an equals sign.
func (t *Text) afterEquals(i int32) int32 {
	switch next := &t.Tokens[min(int(i)+1, len(t.Tokens)-1)]; {
	case t.Tokens[i].Is(':') && t.grammar.QualifiedSet.Is() && next.Is('='):
		return i + 2
	case !t.Tokens[i].Is('='):
		return 0
	case t.grammar.DoubleEquals.Is() && next.Is('=') && next.Start == t.Tokens[i].End:
		return i + 2
	}
	return i + 1
}

// placeOf returns the position of a column in a list of columns, and the number of columns.
func (t *Text) placeOf(list lex.Range, column string) (place, columns int, ok bool) {
	for i, hi := int(list.Lo), int(list.Hi); i <= hi; columns++ {
		end := t.ItemEnd(i, hi)
		if name, isName := t.Name(i); isName && name == column {
			if ok || i+1 != end {
				return 0, 0, false // again, or a part of it
			}
			place, ok = columns, true
		}
		i = end + 1
	}
	return place, columns, ok
}

// rowValue returns the value at a place of the row (value, ...) that fills the tokens from lo to end.
func (t *Text) rowValue(lo, end, place, columns int) (value lex.Range, ok bool) {
	row := t.grammar.RowKeyword.Is() && t.isWord(&t.Tokens[lo], "row")
	if row {
		lo++
	}
	open := &t.Tokens[lo]
	if !open.Is('(') || int(open.Mate)+1 != end || columns == 1 && !row ||
		t.isWord(&t.Tokens[lo+1], "select", "values", "with", "table") {
		return lex.Range{}, false
	}
	values := 0
	for i, hi := lo+1, int(open.Mate); i <= hi; values++ {
		to := t.ItemEnd(i, hi)
		if t.Spreads(i, to) {
			return lex.Range{}, false
		}
		if values == place {
			value = rangeOf(i, to)
		}
		i = to + 1
	}
	return value, values == columns && !value.Empty()
}

// Excluded returns the column c of a value that reads the row that was to be inserted: excluded.c, or MySQL's
// VALUES(c).
func (t *Text) Excluded(value lex.Range) (column string, ok bool) {
	if !t.grammar.OnDuplicate.Is() {
		of, column, ok := t.Qualified(value)
		return column, ok && of == "excluded"
	}
	i := int(value.Lo)
	if value.Hi-value.Lo != 4 || !t.isWord(&t.Tokens[i], "values") || !t.Tokens[i+1].Is('(') {
		return "", false
	}
	return t.Name(i + 2)
}

// Qualified returns the names of a value that is the column of a table, or of the row that
// was to be inserted: excluded.column.
func (t *Text) Qualified(value lex.Range) (of, column string, ok bool) {
	i := int(value.Lo)
	if value.Hi-value.Lo != 3 || !t.Tokens[i+1].Is('.') {
		return "", "", false
	}
	of, named := t.Name(i)
	column, ok = t.Name(i + 2)
	return of, column, named && ok
}
