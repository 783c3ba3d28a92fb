package core

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite"
)

// outcomeError returns the application's error for err, of a guarded statement, and whether the guard threw err. If the
// write may have been applied, the error is ErrUnknownOutcome; but not in a transaction, because a lost connection
// commits nothing there, and database/sql doesn't retry. If no table is enforced, err stays the base driver's.
func (e *Execution) outcomeError(ctx context.Context, err error) (error, bool) {
	typed, raised := e.reported(ctx, err)
	switch {
	case raised:
		e.conn.followRefusal(ctx, typed)
	case (!e.conn.inTx || e.conn.pending) && e.enforces():
		typed = e.conn.settle(typed, true)
	}
	return typed, raised
}

// reported is classifyError. It also reports a refusal to observers, and explains any other error.
func (e *Execution) reported(ctx context.Context, err error) (error, bool) {
	typed, raised := e.classifyError(err)
	if !raised {
		return e.explain(ctx, err), false
	}
	event := e.refusal(Refused, typed)
	event.Sent = e.sent.Query
	e.report(ctx, event)
	return typed, true
}

// classifyError returns a typed error and true if the statement's guard or a seal threw err. Otherwise it returns err
// unchanged, and false.
func (e *Execution) classifyError(err error) (error, bool) {
	m, ok := e.rewriter().ReadMarker(err, func() *rewrite.Values {
		return &rewrite.Values{Tables: e.with.tokens.values(e)}
	})
	if !ok {
		return e.conn.settings.refusedBySeal(err)
	}
	if e.forges() {
		return err, false
	}
	var typed error
	switch m.Kind {
	case guard.NotInteger:
		typed = e.registry.unguardable(err, "", "a fence column, or the column token of fencing_tokens, isn't an "+
			"integer column; alter it to bigint")
	case guard.Stale, guard.NotNewest, guard.OutOfScope, guard.UnknownName:
		if m.Token >= 0 && m.Token < len(e.with.tokens.all) {
			typed = e.refusedToken(m, err)
		}
	case guard.Reshaped:
		typed = &outdated{error: e.table(0).unguardable(err, "the table's unique keys or triggers have changed since they "+
			"were read for a REPLACE; nothing was written; send it again")}
		e.forgetKeys()
	case guard.Locked:
		if m.Table >= 0 && m.Table < len(e.plan.Tables) {
			typed = lockedError(e.table(m.Table), m, e.with.values.Editor, err)
		}
	case guard.Conflict, guard.Assigned, guard.Required, guard.Gone, guard.NotSerial:
		if m.Table >= 0 && m.Table < len(e.plan.Tables) {
			typed = e.serialError(m, err)
		}
	}
	if typed == nil { // another statement's guard
		return err, false
	}
	return typed, true
}

// forges reports whether the application's statement or an argument contains the nonce that identifies the guard's
// errors. Then no error counts as the guard's: a user who has seen the nonce could forge such an error.
func (e *Execution) forges() bool {
	r := e.rewriter()
	return r.Marks(e.request.Query) || slices.ContainsFunc(e.request.Args, func(a driver.NamedValue) bool {
		switch v := a.Value.(type) {
		case nil, int64, float64, bool:
			return false
		case string:
			return r.Marks(v)
		default:
			return r.Marks(fmt.Sprintf("%s", v))
		}
	})
}

// claimColumn returns the claim column, which must equal the token; empty if the table has neither Claim nor ClaimOf.
func (t *Table) claimColumn() string {
	if of := t.Rules.ClaimOf; of.Name != "" {
		return of.Claim
	}
	return t.Rules.Claim
}

// refusedToken returns the typed error for a token that the guard refused.
func (e *Execution) refusedToken(m guard.Marker, err error) error {
	token, t := e.with.tokens.all[m.Token], e.table(e.with.tokens.tableOf(m.Token))
	column := t.claimColumn()
	compared := Compared{Table: t.Name, Token: token, Current: m.Current, Claim: column != "", Gone: m.RowGone}
	switch m.Kind {
	case guard.Stale, guard.NotNewest:
		switch {
		case column != "" && m.Current == token.Value: // only their texts differ, as 3.00 and 3
			return t.factory.Unguardable(Unguarded{Table: t.Name, Column: column, Offset: -1,
				Reason: fmt.Sprintf("the claim column %q isn't an integer column; alter it to bigint", column)}, err)
		case m.Kind == guard.Stale, m.Current > token.Value:
			return t.factory.Stale(compared, err)
		}
		return t.factory.NotIssued(compared, err)
	case guard.OutOfScope:
		return t.outOfScope(m.Key, err)
	default:
		if t.ClaimOf != "" {
			return &Refusal{Sentinel: ErrStale, Err: err, Table: t.Name,
				Reason: fmt.Sprintf("table %q: a row of table %q is gone, and the context carries a claim of it",
					t.Name, t.ClaimOf)}
		}
		return &Refusal{Sentinel: ErrUnknownName, Err: err, Table: t.Name, Token: token,
			Reason: fmt.Sprintf("table %q: token name %q; add it to the ledger (tokens.Store.Ensure, "+
				"Issue or Adopt)", t.Name,
				token.Name)}
	}
}
