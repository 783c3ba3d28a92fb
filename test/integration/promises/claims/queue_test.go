package claims_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A queue is a table of jobs that workers take, with a claim column of the application. Package rewrite guards its
// statements, and the base driver sends them.
type queue struct {
	harness.Base
	db *sql.DB
	r  *rewrite.Rewriter

	values rewrite.Values // of the statement that was sent last
}

func newQueue(t *testing.T, b harness.Base) *queue {
	t.Helper()
	b.AsWritten = true
	q := &queue{Base: b, db: b.Raw(t, b.DSN(t))}
	for _, query := range []string{
		"CREATE TABLE jobs (id bigint PRIMARY KEY, state varchar(20) NOT NULL, attempt bigint)",
		"CREATE TABLE done (job bigint PRIMARY KEY)",
		"CREATE TABLE named (name varchar(40) UNIQUE, attempt bigint)",
	} {
		q.exec(t, query)
	}
	var err error
	q.r, err = rewrite.New(b.Dialect, []rewrite.Table{{Name: "jobs", Key: "id", Claim: "attempt"}, {Name: "named", Key: "name", Claim: "attempt"}})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// jobs are the rows that a test begins with: job 5 was never taken.
const jobs = "1 run 1, 2 run 2, 3 run 3, 4 new 0, 5 new NULL"

// reset leaves the jobs, and 2 and 3 as those that are done.
func (q *queue) reset(t *testing.T) {
	t.Helper()
	for _, query := range []string{
		"DELETE FROM jobs", "DELETE FROM done", "INSERT INTO done (job) VALUES (2), (3)",
		"INSERT INTO jobs (id, state, attempt) VALUES (1, 'run', 1), (2, 'run', 2), (3, 'run', 3), (4, 'new', 0), (5, 'new', NULL)",
	} {
		q.exec(t, query)
	}
}

func (q *queue) exec(t *testing.T, query string) {
	t.Helper()
	if _, err := q.db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// state returns the jobs: id, state and attempt of each.
func (q *queue) state(t *testing.T) string {
	t.Helper()
	return state(t, q.db)
}

func state(t *testing.T, db *sql.DB) string {
	t.Helper()
	return strings.Join(harness.Jobs(t, db, "%d %s %s"), ", ")
}

// An execer is a database or a transaction.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// A worker has the claims of some jobs: their ids and generations in turn.
type worker []int64

// tokens returns the worker's claims.
func (w worker) tokens() (tokens []rewrite.Token) {
	for i := 0; i+1 < len(w); i += 2 {
		key := fmt.Sprint(w[i])
		tokens = append(tokens, rewrite.Token{Name: "jobs/" + key, Key: key, Value: w[i+1]})
	}
	return tokens
}

// send sends a statement without arguments with its guard, in one of the two forms.
func (q *queue) send(ctx context.Context, db execer, p *rewrite.Plan, w worker, literal bool) error {
	return q.sendWith(ctx, db, p, w.tokens(), literal)
}

// sendWith is send with tokens.
func (q *queue) sendWith(ctx context.Context, db execer, p *rewrite.Plan, tokens []rewrite.Token, literal bool) error {
	if p.Verdict != guard.Guard {
		return fmt.Errorf("%v: %w", p.Verdict, &p.Refusal)
	}
	v := rewrite.Values{Tables: []rewrite.TableValues{{Tokens: tokens, Unfenced: len(tokens) == 0}}, Literal: literal}
	q.values = v
	text, added, err := p.Render(v)
	if err != nil {
		return err
	}
	var args []any
	for _, a := range added {
		args = append(args, a.Value(&v))
	}
	_, err = db.ExecContext(ctx, text, args...)
	return err
}

// in returns a statement in the SQL of the queue's database, or "" if this database can't have it.
func (q *queue) in(s statement) string {
	switch {
	case q.Dialect == sqlfence.MySQL && s.mysql != "":
		return s.mysql
	case q.Dialect == sqlfence.MySQL && strings.Contains(s.sql, "ON CONFLICT"), q.Dialect != sqlfence.Postgres && s.postgres:
		return ""
	}
	return s.sql
}

// A statement is a text for PostgreSQL and SQLite, or for PostgreSQL alone, with MySQL's text if that differs.
type statement struct {
	sql, mysql string
	postgres   bool
}
