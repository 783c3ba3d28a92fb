package core

import (
	"strings"
	"sync"

	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/rewrite"
)

// maxCovered is the maximum number of cached tables that match a pattern. Their names may come from requests.
const maxCovered = 10_000

// covered caches the tables of a registry that aren't registered by name but match a registered pattern such as shop.*.
// A table is made from the pattern and the name in the plan, and cached for later executions. The zero value is empty.
// A covered is safe for concurrent use.
type covered struct {
	mu     sync.RWMutex
	tables map[coveredName]*Table
}

type coveredName struct {
	pattern      int
	schema, name string
}

// coveredTable returns the plan's table i, for a registry with patterns (see [registry.table]).
func (r *registry) coveredTable(p *rewrite.Plan, i int) *Table {
	rules, pattern, ok := p.Covered(i)
	if !ok {
		return r.tables[p.Tables[i]]
	}
	key := coveredName{pattern, rules.Schema, rules.Name}
	r.covered.mu.RLock()
	t := r.covered.tables[key]
	r.covered.mu.RUnlock()
	if t == nil {
		key.schema, key.name = strings.Clone(key.schema), strings.Clone(key.name)
		t = r.covered.add(key, r.tables[pattern].of(key.schema, key.name))
	}
	return t
}

// add caches t, unless another goroutine has cached a table for key.
func (c *covered) add(key coveredName, t *Table) *Table {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept := c.tables[key]; kept != nil {
		return kept
	}
	if len(c.tables) >= maxCovered {
		clear(c.tables)
	}
	if c.tables == nil {
		c.tables = make(map[coveredName]*Table)
	}
	c.tables[key] = t
	return t
}

// exempt returns a table with this table's name that no pattern matches.
func (t *Table) exempt() *Table {
	return &Table{Name: t.Name, Mode: Enforce, factory: t.factory,
		Rules: rewrite.Table{Schema: t.Rules.Schema, Name: t.Rules.Name, Exempt: true}}
}

// of returns a table that matches the pattern t, by the table's normalised name.
func (t *Table) of(schema, name string) *Table {
	table := *t
	table.Rules.Pattern, table.Rules.Schema, table.Rules.Name = false, schema, name
	table.spelled = session.Name{Schema: schema, Table: name}
	table.Name = Written(schema, name)
	table.nameResource()
	table.sourceNames = []string{table.tokenName("")}
	return &table
}
