package sqlfence

import (
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence/rewrite"
)

// A registry has registered tables and what guards them. A database has one of all of
// its tables, and if some are observed another one of those that are enforced: what that
// one makes of a statement is what holds, whatever becomes of the observed tables.
type registry struct {
	tables   []*table
	rewriter *rewrite.Rewriter

	serials  bool // some table has a serial
	locks    bool // some table has locks
	ledgers  bool // some table has a ledger
	optional bool // some table is Optional, or has UnfencedInserts
	observed bool // some table is observed
	sealed   bool // some table is Sealed
}

// add adds a table, whose rules are checked.
func (r *registry) add(t *table) {
	r.tables = append(r.tables, t)
	r.serials = r.serials || t.rules.Serial != ""
	r.locks = r.locks || t.rules.Lock.By != ""
	r.ledgers = r.ledgers || t.rules.Ledger
	r.optional = r.optional || t.optional || t.rules.UnfencedInserts
	r.sealed = r.sealed || t.rules.Sealed
	r.observed = r.observed || t.mode == Observe
}

// prepare makes the rewriter for the tables, with the ledger in a schema; empty for where the session finds it.
func (r *registry) prepare(d Dialect, schema string) (err error) {
	rules := make([]rewrite.Table, len(r.tables))
	for i, t := range r.tables {
		rules[i] = t.rules
	}
	r.rewriter, err = rewrite.New(d, rules)
	if err == nil && schema != "" {
		r.rewriter = r.rewriter.WithLedgerSchema(schema)
	}
	return err
}

// names returns the names of the tables that a plan writes to, as registered, or the one
// that its refusal is about.
func (r *registry) names(p *rewrite.Plan) (names []string) {
	switch {
	case p.Verdict != rewrite.Refuse:
		for _, i := range p.Tables {
			names = append(names, r.tables[i].name)
		}
	case p.Refusal.Table >= 0:
		names = []string{r.tables[p.Refusal.Table].name}
	case p.Refusal.Own != "":
		names = []string{p.Refusal.Own}
	}
	return names
}

// unguardable returns the error of a statement that package rewrite refuses.
func (r *registry) unguardable(why *rewrite.Refusal) error {
	err := &UnguardableError{Table: why.Own, Reason: why.Reason, Offset: why.Offset}
	if why.Table >= 0 {
		err.Table = r.tables[why.Table].name
	}
	return err
}

// several returns the error of several statements that are refused for how they are sent.
func (r *registry) several(p *rewrite.Plan) error {
	return &UnguardableError{Table: r.tables[p.Tables[0]].name, Offset: p.Several, Reason: "it writes to a registered table and is one of several statements in one text, " +
		"which only an Exec without arguments runs, where no table is observed; send each by itself"}
}

// unrendered returns the error of a guarded statement that can't be rendered.
func (r *registry) unrendered(err error) error {
	var why *rewrite.Refusal
	if errors.As(err, &why) {
		return r.unguardable(why)
	}
	return fmt.Errorf("sqlfence: %w", err)
}
