package rules

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// A key is the rule Key: the value of the key column decides which token guards a row. If the context carries no token
// for a row, the row is out of scope.
type key struct{ addsNothing }

// assigned refuses an item of a SET list that may assign the row another key, which would move the row out of its
// token's scope. The item may assign the key to itself, or a value that the guard can compare with the row's key.
func (key) assigned(p writing, a *read.Assignment, upsert bool) bool {
	for i := a.Names.Lo; i < a.Names.Hi; i++ {
		column, ok := p.Name(int(i))
		switch {
		case !ok || column != p.target.rules.Key && !slices.Contains(p.Dialect.Guard.RowNumbers, column):
		case column == p.target.rules.Key && p.keepsKey(a):
		case column != p.target.rules.Key || !p.newKey(a, upsert):
			return p.refuseTarget(a.Lo, advise.AssignsKey)
		}
	}
	return true
}

// keepsKey reports whether an item assigns the key column to itself, by the column's name. If the name could also mean
// a column of another table, the databases reject the name as ambiguous.
func (p writing) keepsKey(a *read.Assignment) bool {
	value, returned := p.returnedKey(p.PlainValue(*a))
	column, ok := p.Name(int(value.Lo))
	keeps := ok && value.Hi-value.Lo == 1 && column == p.target.rules.Key && p.isColumn(value.Lo, a)
	if of, column, ok := p.Qualified(value); ok {
		keeps = column == p.target.rules.Key && p.Dialect.Quote(of) == p.target.qualifier && of != "excluded"
	}
	p.target.returnsKey = p.target.returnsKey || keeps && returned
	return keeps
}

// returnedKey returns x if the value is a call of last_insert_id(x) or what the database has instead (see
// [guard.Dialect.KeyReturner]); otherwise the value.
func (p writing) returnedKey(value lex.Range) (inside lex.Range, returned bool) {
	open, f := value.Lo+1, p.Dialect.Guard.KeyReturner
	if f == "" || value.Hi-value.Lo < 4 || !p.Word(value.Lo, f) {
		return value, false
	}
	if !p.Tokens[open].Is('(') || p.Tokens[open].Mate != value.Hi-1 {
		return value, false
	}
	return lex.Range{Lo: open + 1, Hi: value.Hi - 1}, true
}

// isColumn reports whether an item's value, one token, is read as a column. SQLite reads a string as a name only where
// no value may stand. A word such as user or default may be a keyword: it counts as a column only if the item assigns
// the column without quotes as well. SQLite's current_date never is a column.
func (p writing) isColumn(token int32, a *read.Assignment) bool {
	switch p.Tokens[token].Kind {
	case lex.Quoted:
		return true
	case lex.Word:
		return a.Names.Hi-a.Lo == 1 && p.Tokens[a.Lo].Kind == lex.Word &&
			!strings.HasPrefix(p.target.rules.Key, "current_")
	}
	return false
}

// newKey records the key that an item assigns, if the text shows the key: a constant, or the key of the row that was to
// be inserted, which is one of the target's Keys. If the table itself is named excluded, excluded.key may be the
// table's column.
func (p writing) newKey(a *read.Assignment, upsert bool) bool {
	value, to := p.PlainValue(*a), p.to()
	p.target.newKey = true
	if c, ok := p.Constant(value); ok {
		to.AssignsKey = true
		to.NewKeys = append(to.NewKeys, c)
		return true
	}
	column, ok := p.Excluded(value)
	ok = ok && column == p.target.rules.Key && p.target.qualifier != p.Dialect.Quote("excluded")
	if !ok || !upsert || !(inserting{p}).showedKeys() {
		return false
	}
	to.AssignsKey = true
	return true
}

// showedKeys reports whether the keys of all rows to be inserted are known.
func (p inserting) showedKeys() bool {
	return p.insertion.key >= 0 && !p.insertion.unmarked && !slices.ContainsFunc(p.to().Keys,
		func(k guard.KeyValue) bool { return k.Unknown })
}

func (key) inserted(p inserting, column string, token int32, n int) bool {
	switch {
	case column == p.target.rules.Key:
		p.insertion.key = n
	case slices.Contains(p.Dialect.Guard.RowNumbers, column) && !p.target.rules.FreesInserts():
		return p.refuseTarget(token, advise.RowidMayBeKey)
	case slices.Contains(p.Dialect.Guard.RowNumbers, column):
		p.insertion.doubtful = true
	}
	return true
}

// showsKeys decides what happens to the rows of an INSERT if the statement doesn't show their keys or columns: it
// refuses them, leaves them without a token, or has the guard check their keys after they are stored.
func (p inserting) showsKeys(w *read.Write, ins *read.Insertion) bool {
	t := p.target.rules
	p.insertion.doubtful = p.insertion.doubtful || t.Key != "" && p.groupsBySets(ins)
	overridden := ins.Overriding > 0 && !p.Word(ins.Overriding, "system")
	hidden := t.Key != "" && (overridden || p.insertion.doubtful || p.insertion.key < 0 ||
		ins.Source != read.Values && ins.Source != read.Assigned && !p.selectsKeys(ins))
	switch {
	case t.Claim != "":
		p.insertion.unmarked = true
	case t.Key != "" && !t.UnfencedInserts && !overridden && p.mayReturn(w, ins):
		p.insertion.returned = true
		p.to().OneKey = true
		p.plan.ReturnsChecks = p.plan.ReturnsChecks || w.Depth == 0 && !p.explained
	case t.UnfencedInserts:
		// Without a list of columns the rows might contain a value for the fence column.
		p.insertion.unmarked = hidden && p.insertion.listed || ins.Source == read.Defaults
	case hidden && overridden:
		return p.refuseTarget(ins.Overriding, advise.KeysOverridden)
	case hidden && w.Returning > 0 && p.insertion.key >= 0 && p.Dialect.CountsRows:
		return p.refuseTarget(ins.SourceAt, advise.KeysReturned)
	case hidden && p.insertion.key < 0:
		return p.refuseTarget(ins.SourceAt, advise.KeyNotNamed)
	case hidden && p.Dialect.Guard.ReadsNewRow.Is():
		return p.refuseTarget(ins.SourceAt, advise.KeysStoredAsOthers)
	case hidden:
		return p.refuseTarget(ins.SourceAt, advise.KeysUnknown)
	}
	return true
}

// groupsBySets reports whether a query may have GROUPING SETS, ROLLUP or CUBE, which have NULL in place of a constant
// in GROUP BY: the stored key may then be NULL.
func (p inserting) groupsBySets(ins *read.Insertion) bool {
	if !slices.ContainsFunc(ins.Arms, func(arm read.RowArm) bool { return arm.Select }) {
		return false
	}
	for i := ins.Arms[0].After; i < ins.Rows.Hi; i++ {
		if p.Word(i, "grouping", "rollup", "cube") {
			return true
		}
	}
	return false
}

// readsKeys reports whether the planner reads each row's key from the text.
func (p inserting) readsKeys() bool {
	return p.insertion.key >= 0 && !p.insertion.unmarked && !p.insertion.returned
}

// mayReturn reports whether the keys of an INSERT aren't visible, but can be checked in a RETURNING, which sees each
// row as stored. The statement must name the key; otherwise the database generates a key without a token.
func (p inserting) mayReturn(w *read.Write, ins *read.Insertion) bool {
	if p.insertion.key < 0 || w.Verb != read.Insert || w.Returning > 0 || ins.Rows.Empty() || !p.Dialect.CountsRows {
		return false
	}
	if ins.Source == read.Query {
		makes := func(arm read.RowArm) bool {
			item, ok := p.Selected(arm.Columns, p.insertion.key)
			return arm.Select && ok && p.makesKey(item)
		}
		return !p.selectsKeys(ins) && !slices.ContainsFunc(ins.Arms, makes)
	}
	shown := !p.insertion.doubtful
	for _, arm := range ins.Arms {
		for _, row := range arm.Rows {
			item := p.Item(row, p.insertion.key)
			if p.makesKey(item) {
				return false
			}
			_, ok := p.Constant(item)
			shown = shown && ok
		}
	}
	return !shown
}

// makesKey reports whether a value is a new key, which no holder has a token for: the value contains a call without
// arguments, such as gen_random_uuid(), or takes the next number of a sequence.
func (p inserting) makesKey(item lex.Range) bool {
	for i := item.Lo; i < item.Hi; i++ {
		if p.Word(i, "default", "null", "nextval") || p.Tokens[i].Is('(') && p.Tokens[i].Mate == i+1 {
			return true
		}
	}
	return item.Empty()
}

// checkStored adds a check of the stored rows' keys.
func (p inserting) checkStored(w *read.Write) {
	if p.insertion.returned {
		p.plan.Rows = true
		p.insert(p.After(w.ConflictsEnd), render.OpStored, 0, "")
	}
}

// selectsKeys reports whether each part of a query selects a constant as the key, which is
// what the database stores.
func (p inserting) selectsKeys(ins *read.Insertion) bool {
	if p.Dialect.Guard.ReadsNewRow.Is() {
		return false // the guard can't compare the keys as they are stored
	}
	selects := func(arm read.RowArm) bool {
		if !arm.Select {
			return true // rowArm reads the key of each row
		}
		item, ok := p.Selected(arm.Columns, p.insertion.key)
		if ok {
			_, ok = p.Constant(item)
		}
		return ok
	}
	return ins.Source == read.Query && !p.insertion.doubtful && !ins.Rows.Empty() &&
		!slices.ContainsFunc(ins.Arms, func(arm read.RowArm) bool { return !selects(arm) })
}

// rowKey records the key's value: an item of a row, or of the selected columns.
func (p inserting) rowKey(item lex.Range) bool {
	key, ok := p.Constant(item)
	key.Unknown = !ok
	p.to().Keys = append(p.to().Keys, key)
	return ok || p.target.rules.UnfencedInserts || p.refuseTarget(item.Lo, advise.KeyUnknown)
}

// inSet returns true if the row is checked before the first assignment and the statement assigns the key: then the
// guard compares the assigned key again, as stored. With a fence column, the assignment of the token compares the key
// instead.
func (key) inSet(t *render.Registered, how rowWrite) bool {
	return how.checked && (how.newKey || how.returnsKey) && t.FenceColumn == ""
}

// inWhere returns true unless the table has a fence column or a claim, because their check in the row covers the key.
func (key) inWhere(t *render.Registered, _ rowWrite) bool {
	return t.FenceColumn == "" && t.Claim == ""
}
