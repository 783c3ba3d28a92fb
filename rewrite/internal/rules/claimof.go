package rules

import (
	"fmt"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// isComplete reports whether the table with the claims has a name, a key column and a claim column.
func isComplete(c *guard.Claims) bool { return c.Name != "" && c.Key != "" && c.Claim != "" }

// findsClaims refuses a statement in which the guard of a ClaimOf table wouldn't find the table with the claims: a WITH
// item has that table's name, or the statement writes that table. The statement's targets begin at first.
func (p *planner) findsClaims(first int) bool {
	for _, t := range p.targets[first:] {
		table := p.written[t.Table]
		c := &p.RulesOf(table).ClaimOf
		if c.Name == "" {
			continue
		}
		if at := p.commonTable(c.Name); at >= 0 && c.Schema == "" {
			return p.refuse(table, at, advise.ShadowsClaims, c.Name)
		}
		for i := range p.Writes {
			if w := &p.Writes[i]; w.Target.Name == c.Name {
				return p.refuse(table, w.At, advise.WritesClaims, c.Name)
			}
		}
	}
	return true
}

// commonTable returns the token of the WITH item called name, or -1. It searches the whole statement, because a guard
// also stands in the query of an INSERT, and this query may have a separate WITH.
//
//	name [(columns)] AS [[NOT] MATERIALIZED] (
func (p *planner) commonTable(name string) int32 {
	for i := p.Lo; i < p.Hi; i++ {
		if n, ok := p.Name(int(i)); !ok || n != name {
			continue
		}
		at := i + 1
		if p.Tokens[at].Is('(') {
			at = p.Tokens[at].Mate + 1
		}
		if at < p.Hi && p.Word(at, "as") && (p.Tokens[at+1].Is('(') || p.Word(at+1, "not", "materialized")) {
			return i
		}
	}
	return -1
}

// keepsClaims refuses a statement that gives a temporary table the name of a table with claims, because the guard would
// find the temporary table. In MySQL the temporary table hides even a name with the schema.
func (p protection) keepsClaims(name string, at int32) bool {
	for i := range p.Tables {
		if of := p.Tables[i].ClaimOf.Name; of != "" && of == name {
			return p.refuse(i, at, advise.TemporaryClaims)
		}
	}
	return true
}

// claimsInOneFile returns an error if a table and the table with its claims may be in two files. Each file has a
// separate writer, so a takeover could be committed between the guard's query and the write's commit.
func claimsInOneFile(d *render.Dialect, tables []render.Registered) error {
	if !d.Guard.OwnLedgers.Is() {
		return nil
	}
	for i := range tables {
		if t := &tables[i]; t.ClaimsOther() && t.ClaimOf.Schema != t.Schema {
			return fmt.Errorf("table %q: ClaimOf holds within one file; give both tables the same "+
				"schema, or none", t.Name)
		}
	}
	return nil
}
