package fencepgx

import (
	"database/sql/driver"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite"
)

// pgx runs a text that is the name of a prepared statement as that statement, be it a word or the text of another
// statement. So a name is planned as the text behind it, and nothing reaches pgx as a name that wasn't planned as one.
// The connection's own list is read: the pool's hooks, and holders of the raw connection, prepare statements, too.

// byName is the Stmt of a request by a name.
type byName struct{ name, text string }

// request returns a request of a text or name, with its arguments in a list that may have room for them, and its plan.
func (s *session) request(text string, args []any, room []driver.NamedValue) (core.Request, *rewrite.Plan) {
	s.follow()
	r := core.Request{Query: text, Args: named(room, args)}
	if !rewrites(args) {
		if behind, ok := s.link.prepared.Text(text); ok && behind != text {
			r.Query, r.Stmt = behind, byName{text, behind}
		}
	}
	return r, s.state.Rewriter().Plan(r.Query)
}

// text returns what pgx is given for a request: the name, where nothing was added to the text behind it, which is read in
// one way.
func (l *link) text(r core.Request) (string, error) {
	if by, ok := r.Stmt.(byName); ok && by.text == r.Query && r.Escapes == lex.EscapesUnknown {
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
