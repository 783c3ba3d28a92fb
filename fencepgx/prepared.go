package fencepgx

import (
	"context"
	"database/sql/driver"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite"
)

// pgx runs a text that is the name of a prepared statement as that statement, be it a word or the text of another
// statement. So a name is planned as the text behind it, and nothing reaches pgx as a name that wasn't planned as one.
// The connection's own list is read: the pool's hooks, and holders of the raw connection, prepare statements, too.

// byName is the Stmt of a request by a name.
type byName struct{ name, text string }

// request returns a request of a text or name, with its arguments in a list that may have room for them, and its plan.
func (s *session) request(
	ctx context.Context, text string, args []any, room []driver.NamedValue,
) (core.Request, *rewrite.Plan, error) {
	s.follow()
	r := core.Request{Query: text, Args: named(room, args)}
	if !rewrites(args) {
		if behind, ok := s.link.prepared.Text(text); ok && behind != text {
			r.Query, r.Stmt = behind, byName{text, behind}
		}
	}
	plan := s.state.Rewriter().Plan(r.Query)
	if plan.Verdict == guard.Pass {
		if s.misplaces(r.Query, args) {
			return r, plan.Refused(misplacesArguments), nil
		}
		switch ran, err := s.executed(ctx, r.Query); {
		case err != nil:
			return r, plan, err
		case ran != nil:
			return r, ran.Refused(executesUnguarded), nil
		}
	}
	return r, plan, nil
}

// text returns what pgx is given for a request: the name, where nothing was added to the text behind it.
func (l *link) text(r core.Request) (string, error) {
	if by, ok := r.Stmt.(byName); ok && by.text == r.Query {
		return by.name, nil
	}
	return r.Query, l.isNoName(r.Query)
}

// isNoName refuses a text that pgx would take for the name of another statement.
func (l *link) isNoName(text string) error {
	if behind, ok := l.prepared.Text(text); ok && behind != text {
		return &sqlfence.UnguardableError{Offset: -1,
			Reason: "a prepared statement has this text as its name, and pgx would " +
				"run that one; prepare it by another name"}
	}
	return nil
}

// SQL's own EXECUTE runs a prepared statement by the name that it has in the server, whatever has prepared it: a batch
// of pgx's and a PREPARE in SQL leave no trace in pgx. So the server is asked what it has.
const preparedStatements = "SELECT name, statement FROM pg_catalog.pg_prepared_statements"

// executed returns the plan of a prepared statement that is guarded, or refused, and that a text with an EXECUTE
// names; nil for none. Where a name may be written with escapes it is any of them.
func (s *session) executed(ctx context.Context, text string) (*rewrite.Plan, error) {
	if !mentionsExecute(text) {
		return nil, nil
	}
	rows, err := s.link.Query(ctx, preparedStatements)
	if err != nil {
		return nil, err
	}
	low := strings.ToLower(text)
	escapes := strings.Contains(low, `u&"`)
	for _, row := range rows {
		name := strings.ToLower(row[0][:min(len(row[0]), longestName)])
		if !escapes && !strings.Contains(low, name) && !strings.Contains(low, strings.ReplaceAll(name, `"`, `""`)) {
			continue
		}
		if plan := s.state.Rewriter().Plan(row[1]); plan.Verdict != guard.Pass {
			return plan, nil
		}
	}
	return nil, nil
}

func mentionsExecute(text string) bool {
	const word = "execute"
	for i := range len(text) - len(word) + 1 {
		if text[i]|0x20 == word[0] && strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// longestName is how much the server reads of a name, in bytes.
const longestName = 63

const executesUnguarded = "EXECUTE would run a statement as it was prepared, without its guard; pass the " +
	"statement's name, or its text, to Exec or Query"
