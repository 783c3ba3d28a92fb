package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
	"github.com/sqlfence/sqlfence/rewrite"
)

// A Table is a registered table, with what its rules came to. See [Tables].
type Table struct {
	Name     string // as registered
	Resource string // the name of its tokens, or with KeyColumn what it begins with, before "/"

	// The columns are as the database stores their names; empty without the rule.
	FenceColumn  string // of [RowFence]
	KeyColumn    string // of [Key]
	SerialColumn string // of [Serial]
	Lock         LockColumns

	Ledger          bool // it has [Ledger], if only by default
	SingleUse       bool // a token that the row holds is refused: [SingleUse]
	Optional        bool // writes without a token pass: [Optional]
	UnfencedInserts bool // new rows need no token: [UnfencedInserts]
	Sealed          bool // it has [Sealed]; whether the database has the seal, [Verify] says

	Mode Mode // of the table, by [InMode] or [WithMode]
}

// LockColumns are the columns of [EditLock], as the database stores their names; empty
// without it.
type LockColumns struct {
	By     string // who holds the lock
	Since  string // when it was taken
	Expiry string // when it expires
}

// Tables returns the tables that were registered with a fenced database, in the order of
// registration; none if there are none. It asks nothing of the database. If db wasn't
// opened by sqlfence, or a driver stands around the fenced one, it is [ErrInvalid].
func Tables(db *sql.DB) ([]Table, error) {
	if db == nil {
		return nil, fmt.Errorf("%w: Tables: nil database", ErrInvalid)
	}
	d, ok := db.Driver().(*fencedDriver)
	if !ok {
		return nil, fmt.Errorf("%w: Tables: the driver %T isn't fenced; open the database by sqlfence.Open, OpenDB or a registered driver", ErrInvalid, db.Driver())
	}
	tables := make([]Table, len(d.settings.tables))
	for i, t := range d.settings.tables {
		tables[i] = t.public()
	}
	return tables, nil
}

// public returns the table as [Tables] shows it.
func (t *table) public() Table {
	r := &t.rules
	return Table{
		Name: t.name, Resource: t.resource,
		FenceColumn: r.FenceColumn, KeyColumn: r.Key, SerialColumn: r.Serial,
		Lock:   LockColumns{By: r.Lock.By, Since: r.Lock.Since, Expiry: r.Lock.Expiry},
		Ledger: r.Ledger, SingleUse: r.SingleUse, Optional: t.optional, UnfencedInserts: r.UnfencedInserts,
		Sealed: r.Sealed,
		Mode:   t.mode,
	}
}

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

// add adds a table and checks its rules.
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

// A callingRewriter writes guards that ask the ledger by the function of a schema.
type callingRewriter struct {
	schema string
	*rewrite.Rewriter
}

// rewriter returns the rewriter for the connection's statements.
func (s *connState) rewriter() *rewrite.Rewriter {
	schema := s.found.Function()
	if schema == "" {
		return s.settings.rewriter
	}
	calling := s.found.calling.Load()
	if calling == nil || calling.schema != schema {
		calling = &callingRewriter{schema, s.settings.rewriter.WithLedgerFunction(schema)}
		s.found.calling.Store(calling)
	}
	return calling.Rewriter
}

// rewriter returns the rewriter for the execution's registry. That of the enforced tables
// alone does without the function.
func (e *execution) rewriter() *rewrite.Rewriter {
	if e.registry == &e.state.settings.registry {
		return e.state.rewriter()
	}
	return e.registry.rewriter
}

// planAgain makes the plan, also of a prepared statement, by another rewriter for the same tables.
func (e *execution) planAgain(r *rewrite.Rewriter) {
	if e.plan.Versioned {
		e.plan = r.VersionedPlan(e.read.query)
	} else {
		e.plan = r.Plan(e.read.query)
	}
	if stmt := e.asked.stmt; stmt != nil && e.registry == &e.state.settings.registry {
		stmt.plan = r.Plan(stmt.query)
	}
}

// changesDatabase has what was found in the database looked for again after a statement of
// sqlfence's own that may have changed it.
func (s *connState) changesDatabase(ctx context.Context, query string) {
	if !trusted.Is(ctx, query) {
		return
	}
	if s.settings.sealed && sqltext.ChangesSeal(query) {
		s.found.Forget(session.Seals)
	}
	if query == sqltext.CreateLedgerFunction {
		s.found.LookForFunction()
	}
}
