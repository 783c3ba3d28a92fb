package core

import (
	"context"
	"slices"

	"github.com/sqlfence/sqlfence/rewrite"
)

// resolvedTokens are the resolved tokens of a plan's tables, in the order of the tables.
type resolvedTokens struct {
	all   []Token
	first []int   // index in all of each table's first token; nil if the plan has one table
	rows  [][]int // for each table and row to insert, the index of the row's token among the table's; nil for one token
}

// find looks up the tokens of the plan's tables, in the context and in the source.
func (h *resolvedTokens) find(ctx context.Context, e *Execution) error {
	given := TokensFrom(ctx)
	if e.conn.settings.source == nil {
		return h.choose(e, given)
	}
	got, err := e.supply(ctx, given)
	if err != nil {
		return err
	}
	if len(given) == 0 {
		given = got
	} else if len(got) > 0 {
		given = slices.Concat(given, got)
	}
	if err := h.choose(e, given); err != nil {
		return err
	}
	return e.keepTerm(got)
}

// choose selects the tokens of the plan's tables from given.
func (h *resolvedTokens) choose(e *Execution, given []Token) (err error) {
	if len(e.plan.Tables) == 1 {
		h.all, err = e.table(0).tokens(given, e.needsToken(0))
		return err
	}
	h.first = make([]int, len(e.plan.Tables))
	for i := range e.plan.Tables {
		tokens, err := e.table(i).tokens(given, e.needsToken(i))
		if err != nil {
			return err
		}
		h.first[i] = len(h.all)
		h.all = append(h.all, tokens...)
	}
	return nil
}

// needsToken reports whether the statement needs a token for the plan's table i. A statement that only adds rows may
// need none.
func (e *Execution) needsToken(i int) bool {
	if e.table(i).Optional {
		return false
	}
	for n := range e.plan.Targets {
		if target := &e.plan.Targets[n]; target.Table == i && !target.Free {
			return true
		}
	}
	return false
}

// drop removes all tokens: in Observe mode a write increments serials even if it would be refused because it lacks a
// token.
func (h *resolvedTokens) drop() {
	h.all, h.rows = nil, nil
	clear(h.first)
}

// of returns the tokens of the plan's table i.
func (h *resolvedTokens) of(i int) []Token {
	lo, hi := 0, len(h.all)
	if i < len(h.first) {
		lo = h.first[i]
	}
	if i+1 < len(h.first) {
		hi = h.first[i+1]
	}
	return h.all[lo:hi]
}

// tableOf returns the index of the plan's table that a token is for.
func (h *resolvedTokens) tableOf(token int) int {
	i := max(0, len(h.first)-1)
	for i > 0 && token < h.first[i] {
		i--
	}
	return i
}

// addRows records, for each row to insert into a table, the table's token that covers the row.
func (h *resolvedTokens) addRows(i, tables int, rows []int) {
	if h.rows == nil {
		h.rows = make([][]int, tables)
	}
	h.rows[i] = append(h.rows[i], rows...)
}

// values returns the tokens of all tables of the plan, in the form that package rewrite builds a guard from.
func (h *resolvedTokens) values(e *Execution) []rewrite.TableValues {
	tables := make([]rewrite.TableValues, len(e.plan.Tables))
	tokens := make([]rewrite.Token, 0, len(h.all))
	for i := range tables {
		begin := len(tokens)
		for _, token := range h.of(i) {
			tokens = append(tokens, e.table(i).value(token))
		}
		tables[i] = e.table(i).values(tokens[begin:])
		if e.table(i).Rules.Sealed {
			tables[i].Unsealed = e.unseals(e.table(i))
		}
		if h.rows != nil {
			tables[i].Rows = h.rows[i]
		}
	}
	return tables
}

// value returns a token of the table, in the form that package rewrite builds a guard from.
func (t *Table) value(token Token) rewrite.Token {
	return rewrite.Token{Name: token.Name, Key: t.key(token), Value: token.Value}
}

// values returns the table's tokens, in the form that package rewrite builds a guard from.
func (t *Table) values(tokens []rewrite.Token) rewrite.TableValues {
	return rewrite.TableValues{Tokens: tokens, Unfenced: len(tokens) == 0 && t.Rules.Fenced()}
}
