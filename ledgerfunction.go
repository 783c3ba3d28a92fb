package sqlfence

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
	"github.com/sqlfence/sqlfence/rewrite"
)

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
		s.found.ForgetSeals()
	}
	if query == sqltext.CreateLedgerFunction {
		s.found.LookForFunction()
	}
}

// missesFunction reports whether err, of a guard that called the function, says that it can't be
// called, nor the table that it names be found: it was dropped, renamed or restored
// without. Then guards ask without it, until it is found again.
func (s *connState) missesFunction(err error) bool {
	calling := s.found.calling.Load()
	if err == nil || calling == nil {
		return false
	}
	schema := calling.schema
	var missed bool
	switch dberr.SQLState(err) {
	case dberr.UndefinedFunction:
		missed = dberr.NamesFunction(err, sqltext.LedgerFunction)
	case dberr.UndefinedTable: // without the schema it is the guard's own
		missed = isAbout(err, schema+"."+sqltext.LedgerTable)
	case dberr.UndefinedSchema:
		missed = isAbout(err, schema)
	case dberr.InsufficientPrivilege:
		missed = isAbout(err, sqltext.LedgerFunction) || isAbout(err, "schema "+schema)
	}
	if missed {
		s.found.LoseFunction()
	}
	return missed
}

// isAbout reports whether err names something, and not something longer, which a value that is cast
// to regclass may name.
func isAbout(err error, name string) bool {
	_, behind, found := strings.Cut(err.Error(), name)
	next, _ := utf8.DecodeRuneInString(behind)
	return found && !unicode.IsLetter(next) && !unicode.IsDigit(next) && !strings.ContainsRune("_$.", next)
}

// lostFunction reports whether the statement that was sent called the function and err says
// that it is lost. The connection's rewriter doesn't tell whether it did: another connection
// may have missed or found the function meanwhile.
func (e *execution) lostFunction(err error) bool {
	return err != nil && strings.Contains(e.sent.query, sqltext.LedgerFunction+"(") && e.state.missesFunction(err)
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
	e.planAgain(e.registry.rewriter)
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
