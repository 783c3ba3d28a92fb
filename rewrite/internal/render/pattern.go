package render

import (
	"github.com/sqlfence/sqlfence/internal/guard"
)

// A pattern is a table that stands for all tables of a schema, or of all schemas, that aren't registered by
// their own names. A written one gets the pattern's rules while its statement is planned, and belongs to the plan
// alone: nothing is registered, so that a table of a later release is guarded from its first write on.

// A TableList has the tables of a plan by their indexes. Between these two are those of sqlfence's own.
type TableList struct {
	Tables  []Registered // registered
	Covered []Registered // written ones that a pattern stands for
}

// RulesOf returns the table with an index that isn't one of sqlfence's own.
func (l *TableList) RulesOf(table int) *Registered {
	if table < len(l.Tables) {
		return &l.Tables[table]
	}
	return &l.Covered[table-len(l.Tables)-len(OwnTables)]
}

// Covered returns the plan's table i and the index of the pattern that stands for it; ok is false for a table that
// is registered by its name.
func (p *Plan) Covered(i int) (t *guard.Table, pattern int, ok bool) {
	if p.Tables[i] < len(p.Source.Tables) {
		return nil, -1, false
	}
	rules := p.rules(i)
	return &rules.Table, rules.CoveredBy, true
}

// Refused returns a plan for the same tables that refuses the statement.
func (p *Plan) Refused(reason string) *Plan {
	why := guard.Refusal{Table: -1, Offset: -1, Reason: reason}
	switch {
	case p.Verdict == guard.Refuse:
		why.Table, why.Name = p.Refusal.Table, p.Refusal.Name
	case len(p.Tables) > 0:
		why.Table = p.Tables[0]
		if t, pattern, ok := p.Covered(0); ok {
			why.Table, why.Name = pattern, t.FullName()
		}
	}
	return &Plan{Verdict: guard.Refuse, Refusal: why, Tables: p.Tables, Source: Source{TableList: p.Source.TableList}}
}
