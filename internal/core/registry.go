package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
	"github.com/sqlfence/sqlfence/rewrite"
)

// A registry holds registered tables and their rewriter. A database has a registry of all tables and, if some tables
// are observed, a second registry of the enforced tables. The second registry's decision about a statement always
// holds, whatever happens to the observed tables.
type registry struct {
	factory  ErrorFactory
	tables   []*Table
	rewriter *rewrite.Rewriter

	// finds resolve the context values that the tables' rules use in addition to tokens.
	finds []func(*Execution, context.Context) error

	serials      bool // some table has a serial
	claims       bool // some table has claims
	locks        bool // some table has locks
	ledgers      bool // some table has a ledger
	checksLedger bool // some table has a ledger, or presents another table's claims
	optional     bool // some table is Optional, or has UnfencedInserts
	observed     bool // some table is observed
	sealed       bool // some table is Sealed
	patterns     bool // some table is a pattern

	covered covered
}

// add adds a table and records its rules.
func (r *registry) add(t *Table) {
	r.tables = append(r.tables, t)
	r.patterns = r.patterns || t.Rules.Pattern
	r.serials = r.serials || t.Rules.Serial != ""
	r.claims = r.claims || t.Rules.Claim != ""
	r.locks = r.locks || t.Rules.Lock.By != ""
	r.ledgers = r.ledgers || t.HasLedger()
	r.checksLedger = r.checksLedger || t.Rules.Ledger
	r.optional = r.optional || t.Optional || t.Rules.UnfencedInserts
	r.sealed = r.sealed || t.Rules.Sealed
	r.observed = r.observed || t.Mode == Observe
}

// prepare makes the rewriter for the tables. schema is the schema of the ledger; it is empty if the session's search
// path finds the ledger.
func (r *registry) prepare(d dialect.Dialect, schema string) (err error) {
	rules := make([]rewrite.Table, len(r.tables))
	for i, t := range r.tables {
		rules[i] = t.Rules
	}
	if r.claims {
		r.finds = append(r.finds, (*Execution).findTakeover)
	}
	if r.serials {
		r.finds = append(r.finds, (*Execution).findSerial)
	}
	if r.locks {
		r.finds = append(r.finds, (*Execution).findEditor)
	}
	r.rewriter, err = rewrite.New(d, rules)
	if err == nil && schema != "" {
		r.rewriter = r.rewriter.WithLedgerSchema(schema)
	}
	return err
}

// table returns the plan's table i.
func (r *registry) table(p *rewrite.Plan, i int) *Table {
	if !r.patterns {
		return r.tables[p.Tables[i]]
	}
	return r.coveredTable(p, i)
}

// planKind returns the plan kind for the context's serial and takeover.
func (r *registry) planKind(ctx context.Context) (v guard.PlanKind) {
	if !r.serials && !r.claims {
		return 0
	}
	if _, ok := serialFrom(ctx); ok && r.serials {
		v |= guard.Versioned
	}
	if takesOver(ctx) && r.claims {
		v |= guard.TakesOver
	}
	return v
}

// names returns the registered names of the tables that a plan writes to, or of the table that the plan's refusal is
// about.
func (r *registry) names(p *rewrite.Plan) (names []string) {
	switch {
	case p.Verdict != guard.Refuse:
		for i := range p.Tables {
			names = append(names, r.table(p, i).Name)
		}
	case p.Refusal.Name != "":
		names = []string{p.Refusal.Name}
	case p.Refusal.Table >= 0:
		names = []string{r.tables[p.Refusal.Table].Name}
	}
	return names
}

// refused returns the error of a statement that package rewrite refuses.
func (r *registry) refused(why *guard.Refusal) error {
	table := why.Name
	if table == "" && why.Table >= 0 {
		table = r.tables[why.Table].Name
	}
	return r.factory.Unguardable(Unguarded{Table: table, Reason: why.Reason, Offset: why.Offset}, nil)
}

// multiStatementError returns the error of a multi-statement string that can't be guarded as it is sent.
func (r *registry) multiStatementError(p *rewrite.Plan) error {
	return r.factory.Unguardable(Unguarded{
		Table: r.table(p, 0).Name,
		Reason: "it writes to a registered table and is one of several statements in one text, which only an Exec " +
			"without arguments runs, where no table is observed; send each by itself",
		Offset: p.MultiStatement,
	}, nil)
}

// unrendered returns the error of a guarded statement that can't be rendered.
func (r *registry) unrendered(err error) error {
	var why *guard.Refusal
	if errors.As(err, &why) {
		return r.refused(why)
	}
	return fmt.Errorf("sqlfence: %w", err)
}

// calling holds the rewriters with guards that call the function that checks the ledger, in a known schema, or in the
// SQL of a server: a rewriter for all tables, and a rewriter for the enforced tables.
type calling struct {
	schema        string
	text          sqltext.Dialect
	all, enforced *rewrite.Rewriter
}

// calling returns the rewriters for the schema of the ledger's function and for the server; nil if the schema is
// unknown and the server's SQL is the dialect's.
func (s *Conn) calling() *calling {
	schema, text := s.found.Function(), s.session.Text
	if schema == "" && text == nil {
		return nil
	}
	c := s.found.calling.Load()
	if c == nil || c.schema != schema || c.text != text {
		c = &calling{schema, text, s.settings.rewriter.WithLedgerFunction(schema).WithText(text), nil}
		if enforced := s.settings.enforced; enforced != nil {
			c.enforced = enforced.rewriter.WithLedgerFunction(schema).WithText(text)
		}
		s.found.calling.Store(c)
	}
	return c
}

// Rewriter returns the rewriter for the connection's statements. Plans of another rewriter are outdated.
func (s *Conn) Rewriter() *rewrite.Rewriter { return s.rewriterOf(&s.settings.registry) }

func (s *Conn) rewriterOf(r *registry) *rewrite.Rewriter {
	switch c := s.calling(); {
	case c == nil:
		return r.rewriter
	case r == &s.settings.registry:
		return c.all
	default:
		return c.enforced
	}
}

// rewriter returns the rewriter for the execution's registry.
func (e *Execution) rewriter() *rewrite.Rewriter { return e.conn.rewriterOf(e.registry) }

// changesDatabase forgets which tables are sealed after one of sqlfence's own statements that may have changed a seal.
func (s *Conn) changesDatabase(ctx context.Context, query string) {
	if !trusted.Is(ctx, query) {
		return
	}
	if s.settings.sealed && sqltext.ChangesSeal(query) {
		s.found.Forget(session.Seals)
	}
}
