package core

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A guard relies on capabilities of the server and on settings of the session. A connection queries them before its
// first guarded write, and doesn't write without a response.

const (
	// needsLock formats the rule and the condition under which the rule holds.
	needsLock = "%s holds only where %s; compare the token in the row, with RowFence"

	// assignsTwice is why an UPDATE or an upsert is refused on MariaDB.
	assignsTwice = "the sql_mode SIMULTANEOUS_ASSIGNMENT, which is a part of ORACLE, allows no column twice in SET, " +
		"where the row is checked and marked; leave it out of the session's sql_mode"

	// needsWidth formats the column and its type.
	needsWidth = "the column %s is of type %s, and in a sql_mode that isn't strict, or under IGNORE, the server " +
		"stores the highest number of that type in the place of a higher one, so that two holders would have one " +
		"token; alter the column to bigint, or use a strict sql_mode without IGNORE"

	// deletesKeys is why a DELETE with a LIMIT is refused.
	deletesKeys = "%s may read the keys of the rows that LIMIT selects, without a lock, and then delete the rows " +
		"without the guard; leave LIMIT out, and select the rows in WHERE"

	// assignsKey is why an UPDATE that assigns a function's result to the key is refused on a server where a guard sees
	// only the old key.
	assignsKey = "%s shows a guard no key that an UPDATE has assigned, and LAST_INSERT_ID may make another one of " +
		"it; leave the key column out"
)

// know queries the facts about the server and the session that the connection doesn't know yet.
func (s *Conn) know(ctx context.Context, m session.Moment) error {
	err := s.session.Know(ctx, (*queryable)(s), m)
	if err == nil {
		return nil
	}
	if refusal := (*session.Refusal)(nil); errors.As(err, &refusal) {
		return s.refusedServer(refusal)
	}
	return err
}

// queryable sends the package's own queries. It returns driver.ErrBadConn on a lost connection, so that database/sql
// retries on another connection.
type queryable Conn

func (a *queryable) ready(ctx context.Context) error {
	if a.inTx {
		return ctx.Err() // pgx would return driver.ErrBadConn
	}
	return (*Conn)(a).ready(ctx)
}

func (a *queryable) Query(ctx context.Context, query string) ([][]string, error) {
	if err := a.ready(ctx); err != nil {
		return nil, err
	}
	rows, err := a.adapter.Query(ctx, sqltext.Whole(a.settings.profile.Session.Text, query))
	(*Conn)(a).FollowRollback(err)
	return rows, err
}

func (a *queryable) Exec(ctx context.Context, query string) error {
	if err := a.ready(ctx); err != nil {
		return err
	}
	err := a.adapter.Exec(ctx, query)
	(*Conn)(a).FollowRollback(err)
	return err
}

// knowBefore queries the facts before a transaction that may have guarded writes, on a database where an error ends the
// transaction: one of the queries throws an error on purpose ([session.Dialect].Canary). If knowBefore fails, the first
// guarded write queries again.
func (s *Conn) knowBefore(ctx context.Context, readOnly bool) {
	guards := !readOnly && len(s.settings.tables) > 0 && s.settings.bypass == ""
	if guards && s.settings.profile.Session.ErrorEndsTx.Is() {
		_ = s.know(ctx, session.Moment{})
	}
}

// refuses is called after the server couldn't prepare a guarded statement. It returns why guarded writes are refused on
// this server, or nil. In a transaction it sends no query, because the failed Prepare may have ended the transaction.
func (s *Conn) refuses(ctx context.Context) error {
	if s.inTx || s.settings.observes() {
		return nil
	}
	refusal, _ := s.CheckServer(ctx)
	if refusal == nil {
		return nil
	}
	return s.refusedServer(refusal)
}

// refusedServer is the error of a guarded statement on a server on which guards aren't known to hold.
func (s *Conn) refusedServer(r *session.Refusal) error {
	remedy := "use a server that docs/servers.md lists as tested"
	if r.Server != "" {
		remedy = fmt.Sprintf("WithUntestedServer(%q) takes the risk (docs/servers.md)", r.Server)
	}
	return s.settings.factory.Unguardable(Unguarded{Server: r.Server, Reason: fmt.Sprintf("%v; %s", r, remedy),
		Offset: -1}, r.Err)
}

// CheckServer queries the facts that guards rely on, and returns why guarded writes are refused on the server. err is
// why the facts are unknown.
func (s *Conn) CheckServer(ctx context.Context) (refusal *session.Refusal, err error) {
	err = s.session.Know(ctx, (*queryable)(s), session.Moment{})
	if errors.As(err, &refusal) {
		return refusal, nil
	}
	return nil, err
}

// checkServer refuses a guarded write if the server or the session doesn't meet the guard's requirements.
func (e *Execution) checkServer(ctx context.Context) error {
	s := e.conn
	reading := e.read.Escapes
	settings := s.session.HasCharset() && reading != lex.EscapesUnknown || e.plan.AssignsTwice || s.session.Known != ""
	if err := e.know(ctx, session.Moment{InTx: s.inTx, Settings: settings}); err != nil {
		return err
	}
	if e.plan.MultiStatement > 0 || s.session.NeedsCheck(e.plan.Ignores) {
		if err := e.checkSession(ctx); err != nil {
			return err
		}
	}
	if e.plan.Unsettles {
		s.Follow(ctx, e.read.Query)
	}
	switch facts := &s.session.Capabilities; {
	case facts.Unfit != "":
		return e.table(0).unguardable(nil, facts.Unfit)
	case s.session.HasCharset() && reading != lex.EscapesUnknown && reading != facts.Escapes:
		return e.table(0).unguardable(nil, lex.AmbiguousQuote)
	case facts.AssignsAtOnce && e.plan.AssignsTwice:
		return e.table(0).unguardable(nil, assignsTwice)
	case facts.SetReadsOldRow && e.plan.ReadsAssigned:
		return e.table(0).unguardable(nil, fmt.Sprintf(assignsKey, facts.Known))
	case facts.LimitsByKey && e.plan.ChecksLimited:
		return e.table(0).unguardable(nil, fmt.Sprintf(deletesKeys, facts.Known))
	case e.rows && s.settings.profile.RowsUnfit != "":
		return e.table(0).unguardable(nil, s.settings.profile.RowsUnfit)
	case facts.LocksAlone:
		return e.checkLocks()
	case facts.Apart != "":
		return e.checkApart(facts.Apart)
	}
	return nil
}

// checkSession refuses a write if, in this session, its guard may read another ledger than the pool's, or a view
// instead of the table, or if a column may store a lower number than the write's token.
func (e *Execution) checkSession(ctx context.Context) error {
	if err := e.checkSchema(ctx); err != nil {
		return err
	}
	if err := e.checkNarrow(ctx); err != nil {
		return err
	}
	return e.checkViews()
}

// checksLedger reports whether the guard checks the ledger.
func (e *Execution) checksLedger() bool { return e.registry.ledgers && e.find((*Table).HasLedger) >= 0 }

// know queries the facts that the connection doesn't know yet, and plans the statement again if the facts change its
// guard.
func (e *Execution) know(ctx context.Context, m session.Moment) error {
	s := e.conn
	m.Ledger = e.checksLedger()
	if err := s.know(ctx, m); err != nil {
		return err
	}
	if m.Ledger && s.session.LacksFunction() {
		return e.missingFunction(ctx, nil)
	}
	if r := e.rewriter(); !r.Wrote(e.plan) { // another connection may have found the function
		e.plan = r.PlanFor(e.read.Query, e.read.planKind)
	}
	return nil
}

// checkNarrow refuses a write if the type of its column is too narrow for a token, claim or serial, and the server may
// store the highest number of the type instead: the next holder's higher number would become the same.
func (e *Execution) checkNarrow(ctx context.Context) error {
	s := e.conn
	if !s.session.MayClip(e.plan.Ignores) {
		return nil
	}
	for i := range e.plan.Tables {
		t := e.table(i)
		numbers := []string{t.Rules.FenceColumn, t.Rules.Claim, t.Rules.Serial}
		if strings.Join(numbers, "") == "" {
			continue
		}
		column, typ, err := s.session.Narrow(ctx, (*queryable)(s), t.spelled, numbers)
		if err == nil && column != "" { // the current settings matter only for a narrow column
			err = s.know(ctx, session.Moment{InTx: s.inTx, Settings: true})
		}
		switch {
		case err != nil:
			return err
		case column != "" && (s.session.Clips || e.plan.Ignores):
			return t.unguardable(nil, fmt.Sprintf(needsWidth, column, typ))
		}
	}
	return nil
}

// checkSchema refuses a write that needs the ledger if the session finds another ledger than the pool's, or may do so
// after an earlier statement of the same SQL string.
func (e *Execution) checkSchema(ctx context.Context) error {
	s := e.conn
	i := e.find((*Table).HasLedger)
	switch {
	case i < 0:
		return nil
	case e.plan.MultiStatement > 0 && s.session.MayChangeLedger(e.read.Query):
		return e.table(i).unguardable(nil, "the text may change where the session finds names (search_path) "+
			"before it writes; send each statement by itself")
	}
	return s.checkSchema(ctx, e.table(i).Name)
}

// checkSchema refuses a statement that needs the ledger if the session finds another ledger than its pool's.
func (s *Conn) checkSchema(ctx context.Context, table string) error {
	err := s.session.CheckSchema(ctx, (*queryable)(s))
	if moved := (*session.SchemaChanged)(nil); errors.As(err, &moved) {
		return s.settings.unguardable(nil, table, moved.Error())
	}
	return err
}

// isView is why a write is refused if the table has a rule with columns and its name may stand for a view.
const isView = "the name stands, or after SET search_path or USE may stand, for the view or foreign table %s.%s, and " +
	"a guard can't rely on its columns; write the table's schema in the statement, or register the table behind it " +
	"and write to that"

// checkViews refuses a write by a name that may stand for a view, which may compute the columns that the guard reads.
func (e *Execution) checkViews() error {
	s := &e.conn.session
	if len(s.Views) == 0 {
		return nil
	}
	for i := range e.plan.Targets {
		w := &e.plan.Targets[i]
		t := e.table(w.Table)
		var v *session.View
		if t.readsRows() {
			v = s.InPlace(w.Schema, w.Name, e.read.Query)
		}
		if of := &t.Rules.ClaimOf; v == nil && of.Name != "" {
			v = s.InPlace(of.Schema, of.Name, e.read.Query)
		}
		if v != nil {
			return t.unguardable(nil, fmt.Sprintf(isView, v.Schema, v.Name))
		}
	}
	return nil
}

// checkOwnTables is checkSchema for a statement of sqlfence's packages, if the statement names one of sqlfence's
// tables.
func (s *Conn) checkOwnTables(ctx context.Context, query string) error {
	if !s.session.MayHaveChangedLedger() || sqltext.Place(s.settings.profile.Text, "s", query) == query {
		return nil
	}
	return s.checkSchema(ctx, sqltext.LedgerTable)
}

// checkApart refuses a write that compares a token with the ledger if the ledger's lock doesn't block the clients of
// all servers: another client could get a newer token at the same time, and both writes would commit. apart is the
// reason.
func (e *Execution) checkApart(apart string) error {
	for i := range e.plan.Tables {
		if t := e.table(i); t.Rules.Ledger && len(e.with.tokens.of(i)) > 0 {
			rule := "Ledger"
			if t.ClaimOf != "" {
				rule = "ClaimOf"
			}
			return t.unguardable(nil, fmt.Sprintf(needsLock, rule, apart))
		}
	}
	return nil
}

// maySplit reports whether the query or an argument has a byte beyond ASCII before a byte that a driver escapes. In
// GBK, Big5 or Shift JIS the byte and the driver's backslash may be one character. An argument in the SQL string could
// then end its own string literal, or the driver could find a placeholder inside of a literal.
func (e *Execution) maySplit() bool {
	return len(e.request.Args) > 0 && (escapedAfter(e.request.Query) || slices.ContainsFunc(e.request.Args, splits))
}

func splits(a driver.NamedValue) bool {
	switch v := a.Value.(type) {
	case nil, int64, uint64, float64, bool, time.Time:
		return false
	case string:
		return escapedAfter(v)
	case []byte:
		return escapedAfter(v)
	}
	return true
}

func escapedAfter[T string | []byte](text T) bool {
	for i := 1; i < len(text); i++ {
		if text[i-1] >= utf8.RuneSelf && strings.IndexByte("'\"\\\x00\n\r\x1a", text[i]) >= 0 {
			return true
		}
	}
	return false
}

// wants records which facts about the server and the session the rules of the tables need.
func (s *Settings) wants() {
	s.wanted.Schema, s.wanted.Ledger = s.schema, s.ledgers
	for _, t := range s.tables {
		if t.Rules.Sealed {
			s.wanted.Sealed = append(s.wanted.Sealed, t.spelled)
		}
		switch {
		case !t.readsRows():
		case t.Rules.Pattern:
			s.wanted.Read.All = true
		default:
			s.wanted.Read.List = append(s.wanted.Read.List, t.spelled.Table)
		}
	}
}
