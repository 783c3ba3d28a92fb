package core

import (
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite"
)

// Explain returns what sqlfence would do with a statement, without sending it. kind is Guarded, Refused or Passed;
// tables are the registered tables that the statement writes to; text is the guarded SQL string; err is the reason for
// a refusal.
func (s *Settings) Explain(query string) (kind EventKind, tables []string, text string, err error) {
	plan := s.rewriter.Plan(query)
	kind, tables, text = Passed, s.names(plan), query
	switch plan.Verdict {
	case guard.Guard:
		kind = Guarded
		text, err = s.show(plan)
	case guard.Refuse:
		err = s.refused(&plan.Refusal)
	}
	if err != nil {
		return Refused, tables, "", err
	}
	return kind, tables, text, nil
}

// Unregistered returns the unregistered tables that a statement writes.
func (s *Settings) Unregistered(query string) []string { return s.rewriter.Unregistered(query) }

// show returns the guarded SQL string of a plan for one token per table.
func (r *registry) show(plan *rewrite.Plan) (string, error) {
	if text, _, err := plan.Default(); err == nil {
		return text, nil
	}
	values := rewrite.Values{Literal: true, Tables: make([]rewrite.TableValues, len(plan.Tables))}
	for i := range plan.Tables {
		if t := r.table(plan, i); t.Rules.Fenced() {
			values.Tables[i].Tokens = []rewrite.Token{{Name: t.Resource, Value: 1}}
		}
	}
	text, _, err := plan.Render(values)
	if err != nil {
		return "", r.unrendered(err)
	}
	return text, nil
}
