package fencepgx

import (
	"database/sql/driver"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite"
)

// pgx executes a text that is the name of a prepared statement as that statement. So a name is planned as its
// statement, and no other text may reach pgx as a name. The connection has the names, because the pool's hooks prepare
// statements as well.

// byName is the Stmt of a request by a name.
type byName struct{ name, text string }

// request returns a request of a text or name, and its plan. room may have space for the arguments.
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

// text returns the text for pgx: the name, if nothing was added to its statement.
func (l *link) text(r core.Request) (string, error) {
	if by, ok := r.Stmt.(byName); ok && by.text == r.Query && r.Escapes == lex.EscapesUnknown {
		return by.name, nil
	}
	return r.Query, l.isNoName(r.Query)
}

// isNoName refuses a text that is the name of another statement.
func (l *link) isNoName(text string) error {
	if behind, ok := l.prepared.Text(text); ok && behind != text {
		return &sqlfence.UnguardableError{Offset: -1,
			Reason: "a prepared statement has this text as its name, and pgx would " +
				"run that one; prepare it by another name"}
	}
	return nil
}
