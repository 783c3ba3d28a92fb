package sqlfence

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
	"github.com/sqlfence/sqlfence/rewrite"
)

// A ledgerFunction is what the connections of one database know about the stored function
// that asks the ledger: whether it is there. It is safe for concurrent use.
type ledgerFunction struct {
	rewriter atomic.Pointer[rewrite.Rewriter] // of guards that call it; nil if it isn't known to be there
	schema   atomic.Pointer[string]           // where it was found last
	missed   atomic.Int64                     // guarded statements without it
	asked    atomic.Int64                     // when a connection asked last, in nanoseconds of Unix time
}

// The question costs a round trip. It is asked before one of a number of guarded statements,
// and where the function was missing not again for a while.
const (
	worthAsking = 1000
	askAgain    = 10 * time.Second
)

// asksFunction reports whether the function may be there and of use. Drivers that aren't
// known aren't asked: a test's may stand there, which expects each statement.
func (s *settings) asksFunction() bool { return s.ledgers && s.profile.findLedgerFunction != "" }

// isDue counts a guarded statement without the function, and reports whether it is time to
// ask for it.
func (f *ledgerFunction) isDue() bool {
	if f.rewriter.Load() != nil || f.missed.Add(1) < worthAsking {
		return false
	}
	now, last := time.Now().UnixNano(), f.asked.Load()
	return (last == 0 || now-last >= int64(askAgain)) && f.asked.CompareAndSwap(last, now)
}

// findFunction asks for the function before a guarded statement, now and then, and uses it
// if it is there.
func (e *execution) findFunction(ctx context.Context) {
	s := e.state
	if e.asked.stmt != nil || s.inTx || !s.settings.asksFunction() || !s.ledger.isDue() {
		return
	}
	s.ledger.ask(ctx, s.settings, s.base)
	e.plan = e.rewriter().Plan(e.read.query)
}

// ask asks a connection for the function. Without an answer nothing fails: guards do
// without.
func (f *ledgerFunction) ask(ctx context.Context, s *settings, base driver.Conn) {
	if schema, _, err := queryText(ctx, base, s.profile.findLedgerFunction); err == nil && schema != "" {
		f.schema.Store(&schema)
		f.rewriter.Store(s.rewriter.WithLedgerFunction(schema))
	}
}

// installed asks again after a statement that has installed the function.
func (f *ledgerFunction) installed(ctx context.Context, e *execution) {
	s := e.state
	if e.sent.query == sqltext.CreateLedgerFunction && trusted.Is(ctx, e.sent.query) && !s.inTx && s.settings.asksFunction() {
		f.ask(ctx, s.settings, s.base)
	}
}

// lost reports whether err, of a guard that called the function, says that it can't be
// called, nor the table that it names be found: it was dropped, renamed or restored
// without. Then guards ask without it, until it is found again.
func (f *ledgerFunction) lost(err error) bool {
	schema := f.schema.Load()
	if err == nil || schema == nil {
		return false
	}
	var parts []string // of what it says
	switch dberr.SQLState(err) {
	case dberr.UndefinedFunction:
		parts = []string{sqltext.LedgerFunction}
	case dberr.UndefinedTable: // without the schema it is the guard's own
		parts = []string{*schema + "." + sqltext.LedgerTable}
	case dberr.UndefinedSchema:
		parts = []string{*schema}
	case dberr.InsufficientPrivilege:
		parts = []string{sqltext.LedgerFunction, "schema " + *schema}
	}
	text := err.Error()
	if !slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) }) {
		return false
	}
	f.rewriter.Store(nil)
	return true
}

// lostFunction reports whether the statement that was sent called the function and err says
// that it is lost. The connection's rewriter doesn't tell whether it did: another connection
// may have missed or found the function meanwhile.
func (e *execution) lostFunction(err error) bool {
	return err != nil && strings.Contains(e.sent.query, sqltext.LedgerFunction+"(") && e.state.ledger.lost(err)
}

// rewriter returns the rewriter for the connection's statements.
func (s *connState) rewriter() *rewrite.Rewriter {
	if r := s.ledger.rewriter.Load(); r != nil {
		return r
	}
	return s.settings.rewriter
}

// rewriter returns the rewriter for the execution's registry. That of the enforced tables
// alone does without the function.
func (e *execution) rewriter() *rewrite.Rewriter {
	if e.registry == &e.state.settings.registry {
		return e.state.rewriter()
	}
	return e.registry.rewriter
}

// withoutFunction looks at the error of a guarded statement. If it says that the ledger's
// function is gone, the statement, of which nothing was applied, is made into one that does
// without, to be sent again. Where its transaction is over by the error, it isn't, and lost
// says why; lost is err if that says something else.
func (e *execution) withoutFunction(err error) (again bool, lost error) {
	s := e.state
	if !e.lostFunction(err) {
		return false, err
	}
	lost = &functionLost{err}
	if s.inTx {
		return false, lost
	}
	without := e.registry.rewriter
	if e.plan.Versioned {
		e.plan = without.VersionedPlan(e.read.query)
	} else {
		e.plan = without.Plan(e.read.query)
	}
	if stmt := e.asked.stmt; stmt != nil && e.registry == &s.settings.registry {
		stmt.plan = without.Plan(stmt.query)
	}
	decided, _ := e.render()
	return decided == guarded, lost
}

// functionLost is the error of a statement that called the ledger's function when that was
// gone, and that can be run again in a new transaction: guards do without from now on.
type functionLost struct{ err error }

func (e *functionLost) Error() string {
	return "sqlfence: the ledger's function is gone, run the transaction again: " + e.err.Error()
}
func (e *functionLost) Unwrap() error { return e.err }

// Temporary returns true: see [Retry].
func (e *functionLost) Temporary() bool { return true }

// queryText returns the text in the row of a query without arguments, and whether there is
// a row.
func queryText(ctx context.Context, c driver.Conn, query string) (text string, found bool, err error) {
	rows, err := queryTexts(ctx, c, query)
	if err != nil || len(rows) == 0 {
		return "", false, err
	}
	return rows[len(rows)-1][0], true, nil
}
