package rewrite

import (
	"cmp"

	"github.com/sqlfence/sqlfence/internal/guard"
)

// A registered is a table that is registered, or written where a pattern stands for it, with its names as guards write them.
type registered struct {
	guard.Table
	quoted  names
	columns []string // all that the rules are about
	has     []int    // the rules with columns, as indexes of precedence
	pattern int      // of a table that a pattern stands for: its index
}

// names are those of a table and its columns in quotes; empty for none.
type names struct {
	name, fence, key, serial string
	lock                     guard.Lock
	number                   string // the serial or the claim: what an assigned value has to raise
	steady                   string // one of them, or the lock's holder, which a check may assign to itself
}

// newTables returns tables with their names for a dialect; nil for none.
func newTables(d *dialect, tables []guard.Table) []registered {
	all := make([]registered, len(tables))
	for i := range tables {
		t := &all[i]
		if t.Table = tables[i]; d != nil {
			t.prepare(d)
		}
	}
	return all
}

// prepare notes the columns, and how they are written.
func (t *registered) prepare(d *dialect) {
	quoted := func(column string) string {
		if column == "" {
			return ""
		}
		return d.Quote(column)
	}
	for _, column := range t.Columns() {
		if *column != "" {
			t.columns = append(t.columns, *column)
		}
	}
	for rule, has := range [...]bool{ruleKey: t.Key != "", ruleRowFence: t.FenceColumn != "", ruleClaim: t.Claim != "",
		ruleSerial: t.Serial != "", ruleEditLock: t.Locks()} {
		if has {
			t.has = append(t.has, rule)
		}
	}
	q := &t.quoted
	q.name, q.fence, q.key, q.serial = quoted(t.Name), quoted(t.FenceColumn), quoted(t.Key), quoted(t.Serial)
	q.number = cmp.Or(q.serial, quoted(t.Claim))
	q.lock = guard.Lock{By: quoted(t.Lock.By), Since: quoted(t.Lock.Since), Expiry: quoted(t.Lock.Expiry)}
	q.steady = cmp.Or(q.fence, q.number, q.lock.By, q.key)
}
