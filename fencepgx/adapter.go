package fencepgx

import (
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite"
)

var _ core.ConnAdapter = (*connAdapter)(nil)

// A connAdapter adapts pgx's connection for the core.
type connAdapter struct {
	basedriver.Liveness
	conn     *pgx.Conn
	prepared basedriver.Prepared
	session  *session
}

func newConnAdapter(c *pgx.Conn, s *session) *connAdapter {
	prepared, _ := basedriver.PreparedOn(c) // New has looked
	return &connAdapter{Liveness: basedriver.LivenessOf(c.PgConn().Conn(), c, c.Ping), conn: c,
		prepared: prepared, session: s}
}

func (l *connAdapter) Exec(ctx context.Context, query string) error {
	_, err := l.conn.PgConn().Exec(ctx, query).ReadAll()
	return err
}

// Query returns the rows as texts, and NULL as an empty text.
func (l *connAdapter) Query(ctx context.Context, query string) ([][]string, error) {
	results, err := l.conn.PgConn().Exec(ctx, query).ReadAll()
	if err != nil {
		return nil, err
	}
	var all [][]string
	for _, result := range results {
		for _, values := range result.Rows {
			texts := make([]string, len(values))
			for i, v := range values {
				texts[i] = string(v)
			}
			all = append(all, texts)
		}
	}
	return all, nil
}

// Rewrite runs the rewriter once, because a second run might return a different statement.
func (l *connAdapter) Rewrite(
	ctx context.Context, o basedriver.Options, query string, args []driver.NamedValue,
) (to basedriver.Rewritten, refused string, err error) {
	to, refused, err = o.Rewrite(ctx, l.conn, query, args)
	to.Pure = false
	if text, ok := l.prepared.Text(to.Query); ok {
		to.Query = text
	}
	if refused == "" {
		refused = l.Misplaces(core.Request{Query: to.Query, Args: to.Args}, false)
	}
	return to, refused, err
}

func isOption(v any) bool {
	switch v.(type) {
	case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID, pgx.QueryRewriter:
		return true
	}
	return false
}

// Keeps reports false, because pgx keeps statements itself.
func (l *connAdapter) Keeps(string, *rewrite.Plan, bool) bool { return false }

func (l *connAdapter) Follow(string)       {}
func (l *connAdapter) Follows(string) bool { return false }

// closing bounds the end of a session. pgx waits for the server to close the connection.
const closing = time.Second

func (l *connAdapter) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	return l.conn.Close(ctx)
}

// Alive implements core.ConnAdapter. Data that arrives on a busy connection is a response, so a busy connection counts
// as alive.
func (l *connAdapter) Alive(ctx context.Context) bool {
	return l.conn.PgConn().IsBusy() || l.Liveness.Alive(ctx)
}

// named returns arguments for the core, in a list that may have room for them.
func named(room []driver.NamedValue, args []any) []driver.NamedValue {
	all := slices.Grow(room, len(args))
	for i, v := range args {
		all = append(all, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return all
}

// plain returns arguments for pgx.
func plain(args []driver.NamedValue) []any {
	if len(args) == 0 {
		return nil
	}
	all := make([]any, len(args))
	for i := range args {
		all[i] = args[i].Value
	}
	return all
}

// If a string equals the name of a prepared statement, pgx executes that statement. So fencepgx decides about the guard
// ([rewrite.Plan]) by the statement's SQL, and refuses SQL that equals the name of a different statement. It reads the
// names from pgx's connection, because the pool's hooks also prepare statements.

// byName is the Stmt of a request by a name.
type byName struct{ name, text string }

// request returns a request, and its plan. text is SQL or the name of a prepared statement. room is a list to reuse for
// the arguments.
func (s *session) request(text string, args []any, room []driver.NamedValue) (core.Request, *rewrite.Plan) {
	s.follow()
	r := core.Request{Query: text, Args: named(room, args)}
	if !rewrites(args) {
		if behind, ok := s.adapter.prepared.Text(text); ok && behind != text {
			r.Query, r.Stmt = behind, byName{text, behind}
		}
	}
	return r, s.state.Rewriter().Plan(r.Query)
}

// text returns the text for pgx: the name, if nothing was added to its statement.
func (l *connAdapter) text(r core.Request) (string, error) {
	if by, ok := r.Stmt.(byName); ok && by.text == r.Query && r.Escapes == lex.EscapesUnknown {
		return by.name, nil
	}
	return r.Query, l.isNoName(r.Query)
}

// isNoName refuses SQL that is the name of a different prepared statement.
func (l *connAdapter) isNoName(text string) error {
	if behind, ok := l.prepared.Text(text); ok && behind != text {
		return &sqlfence.UnguardableError{Offset: -1,
			Reason: "a prepared statement has this text as its name, and pgx would " +
				"run that one; prepare it by another name"}
	}
	return nil
}

// Misplaces returns why a statement is refused: in the simple protocol pgx would write arguments where the server reads
// no placeholder, such as in a string, and a value could end the string and begin another statement.
func (l *connAdapter) Misplaces(r core.Request, _ bool) string {
	simple, args := l.session.simple, r.Args
	for len(args) > 0 && isOption(args[0].Value) {
		if mode, ok := args[0].Value.(pgx.QueryExecMode); ok {
			simple = mode == pgx.QueryExecModeSimpleProtocol
		}
		args = args[1:]
	}
	if simple && len(args) > 0 && !lang.Inlines(l.session.state.Settings().Dialect(), r.Query) {
		return misplacesArguments
	}
	return ""
}

const misplacesArguments = "in its simple protocol pgx would write the arguments where the server reads no " +
	"placeholders; write a blank before each string, and pass strings that contain quotes, backslashes or $ as arguments"
