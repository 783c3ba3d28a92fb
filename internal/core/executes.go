package core

import (
	"context"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/rewrite"
)

// SQL's EXECUTE runs a prepared statement by its name in the server. A hook of pgxpool, a raw connection, another user
// of the pool or a statement under Bypass may have prepared the named statement without a guard, and the driver may not
// know of it. So this package reads the session's prepared statements from the server, if the server lists them: see
// session.Dialect.Prepared.

// preparedTexts returns the session's prepared statements that an EXECUTE in query may run. Without an EXECUTE it sends
// nothing.
func (s *Conn) preparedTexts(ctx context.Context, query string) (texts []string, err error) {
	p := s.settings.profile
	if p.Session.Prepared == "" {
		return nil, nil
	}
	may, alone := lang.MayExecute(p.Dialect, query)
	if !may {
		return nil, nil
	}
	rows, err := (*queryable)(s).Query(ctx, p.Session.Prepared)
	switch {
	case alone && dberr.SQLState(err) == dberr.InFailedTransaction: // the server refuses the EXECUTE
		return nil, nil
	case err != nil:
		return nil, err
	}
	for _, row := range rows {
		if lang.NamesPrepared(p.Dialect, query, row[0]) {
			texts = append(texts, lang.Prepared(p.Dialect, row[1]))
		}
	}
	return texts, nil
}

// MayExecute reports whether query may run a prepared statement by SQL's EXECUTE, on a server that lists them.
func (s *Conn) MayExecute(query string) bool {
	if s.settings.profile.Session.Prepared == "" {
		return false
	}
	may, _ := lang.MayExecute(s.settings.profile.Dialect, query)
	return may
}

// readExecuted replaces the plan by a refusal if the statement executes a prepared statement that needs a guard.
func (e *Execution) readExecuted(ctx context.Context) (err error) {
	e.read.executes, err = e.conn.preparedTexts(ctx, e.read.Query)
	e.refuseExecuted()
	return err
}

// refuseExecuted refuses the statement if one of the prepared statements that readExecuted has found needs a guard. It
// must be called again if the execution goes on for the enforced tables only.
func (e *Execution) refuseExecuted() {
	if plan := needsGuard(e.rewriter(), e.read.executes); plan != nil {
		e.plan = plan.Refused(executesUnguarded)
	}
}

const executesUnguarded = "EXECUTE would run a statement as it was prepared, without its guard; pass the " +
	"statement's text, or with pgx its name, to Exec or Query"

// needsGuard returns the plan of the first prepared statement that an EXECUTE must not run, else nil: one that needs a
// guard, is refused, or sets a setting that an argument names, because sqlfence doesn't check an EXECUTE's arguments.
func needsGuard(r *rewrite.Rewriter, texts []string) *rewrite.Plan {
	for _, text := range texts {
		if plan := r.Plan(text); plan.Verdict != guard.Pass || len(plan.Settings) > 0 {
			return plan
		}
	}
	return nil
}
