package render

import (
	"cmp"
	"slices"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Registered is a registered table, or a written table that a pattern covers, with the quoted names that guards use.
type Registered struct {
	guard.Table
	Quoted    names
	Owned     []string // the columns that the rules are about
	Has       []int    // the table's rules, in the order of precedence
	CoveredBy int      // for a table that a pattern covers: the pattern's index
}

// names are the quoted names of a table and its columns; empty for a missing column.
type names struct {
	Name, Fence, key, Serial string
	lock                     guard.Lock
	number                   string // the serial or the claim, which an assigned value must increase
	Steady                   string // a column that a check may assign to itself: one of these, or the lock's holder
}

// NewTables returns the described tables with their names quoted for a dialect; nil if no tables are described.
func NewTables(d *Dialect, tables []guard.Table) []Registered {
	all := make([]Registered, len(tables))
	for i := range tables {
		t := &all[i]
		if t.Table = tables[i]; d != nil {
			t.prepare(d)
		}
	}
	return all
}

// prepare sets the fields that depend on the rules: the columns, and their quoted names.
func (t *Registered) prepare(d *Dialect) {
	quoted := func(column string) string {
		if column == "" {
			return ""
		}
		return d.Quote(column)
	}
	for _, column := range t.Columns() {
		if *column != "" {
			t.Owned = append(t.Owned, *column)
		}
	}
	for rule, has := range [...]bool{RuleLedger: t.Ledger, RuleKey: t.Key != "", RuleRowFence: t.FenceColumn != "",
		RuleClaim: t.Claim != "", RuleTakeover: t.Claim != "", RuleSerial: t.Serial != "", RuleEditLock: t.Locks(),
		RuleSealed: t.Sealed} {
		if has {
			t.Has = append(t.Has, rule)
		}
	}
	q := &t.Quoted
	q.Name, q.Fence, q.key, q.Serial = quoted(t.Name), quoted(t.FenceColumn), quoted(t.Key), quoted(t.Serial)
	q.number = cmp.Or(q.Serial, quoted(t.Claim))
	q.lock = guard.Lock{By: quoted(t.Lock.By), Since: quoted(t.Lock.Since), Expiry: quoted(t.Lock.Expiry)}
	q.Steady = cmp.Or(q.Fence, q.number, q.lock.By, q.key)
}

// OwnTables are the tables that sqlfence's packages keep, in any schema. A client that wrote to such a table, or
// shadowed the table with another table, could make a stale token pass.
var OwnTables = sqltext.OwnTables

// IsOwnTable reports whether a table's normalised name is in OwnTables.
func IsOwnTable(table string) bool { return slices.Contains(OwnTables[:], table) }

// A TableList has the tables of a plan. Their indexes count first Tables, then OwnTables, then Covered.
type TableList struct {
	Tables  []Registered // the registered tables
	Covered []Registered // written tables that a pattern covers
}

// RulesOf returns the table with an index that doesn't mean one of OwnTables.
func (l *TableList) RulesOf(table int) *Registered {
	if table < len(l.Tables) {
		return &l.Tables[table]
	}
	return &l.Covered[table-len(l.Tables)-len(OwnTables)]
}
