package parsers

import (
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/rewrite"
)

// The registered tables have these columns for guards.
const (
	fenceColumn = "fence_token"
	keyColumn   = "shelf"
)

var registered = []string{"books", "orders"}

// A ruleSet registers the two tables under one name.
type ruleSet struct {
	name   string
	tables []rewrite.Table // in the order of registered
}

func rules(name string, books, orders rewrite.Table) ruleSet {
	books.Name, orders.Name = registered[0], registered[1]
	return ruleSet{name, []rewrite.Table{books, orders}}
}

var (
	fence     = rewrite.Table{FenceColumn: fenceColumn}
	ledger    = rewrite.Table{Ledger: true}
	both      = rewrite.Table{FenceColumn: fenceColumn, Ledger: true}
	keyFence  = rewrite.Table{FenceColumn: fenceColumn, Key: keyColumn}
	keyLedger = rewrite.Table{Ledger: true, Key: keyColumn}

	ruleSets = []ruleSet{
		rules("fence", fence, fence),
		rules("ledger", ledger, ledger),
		rules("both", both, both),
		rules("fence and ledger", fence, ledger),
		rules("fence by key", keyFence, keyFence),
		rules("ledger by key", keyLedger, keyLedger),
	}
)

func (s ruleSet) of(table string) *rewrite.Table {
	for i := range s.tables {
		if s.tables[i].Name == table {
			return &s.tables[i]
		}
	}
	return nil
}

// literalValue is the token's value if guards contain values as literals. No generated statement contains this number.
const literalValue = 424242424242

// unlisted is a unique key on a column that no generated REPLACE lists, because the value of a listed column could be
// any expression.
var unlisted = &session.UniqueKeys{Shape: "[]", Keys: [][]session.KeyColumn{{{Name: "doc", Default: "'first'"}}}}

// render returns the guarded SQL, with its values as arguments or as literals.
func render(p *rewrite.Plan, literal bool) (string, []rewrite.Arg, error) {
	if literal || !p.Params || p.Replaces() != nil {
		v := rewrite.Values{Literal: literal || !p.Params, Tables: make([]rewrite.TableValues, len(p.Tables))}
		for i := range v.Tables {
			v.Tables[i].Tokens = []rewrite.Token{{Name: "it's", Key: "it's", Value: literalValue}}
		}
		if p.Replaces() != nil {
			p = p.Knowing(unlisted)
		}
		return p.Render(v)
	}
	return p.Default()
}
