package sqlfence

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/rewrite"
)

var _ core.ConnAdapter = (*connAdapter)(nil)

// A connAdapter adapts the base driver's connection for the core.
type connAdapter struct {
	basedriver.Liveness
	base     driver.Conn
	prepared basedriver.Prepared // by name
	cache    stmtCache
	sqlmw    *interceptor
	settings *core.Settings
}

func newConnAdapter(s *core.Settings, base driver.Conn) *connAdapter {
	l := &connAdapter{base: base, cache: newStmtCache(s, base), settings: s}
	if s.Remote() {
		l.Liveness = basedriver.NewLiveness(base)
		l.prepared = l.Liveness.Prepared()
	}
	return l
}

func (l *connAdapter) Exec(ctx context.Context, query string) error {
	_, err := basedriver.Exec(ctx, l.base, query, nil)
	if !basedriver.IsSkip(err) {
		return err
	}
	s, err := basedriver.Prepare(ctx, l.base, query)
	if err != nil {
		return err
	}
	_, err = basedriver.ExecStmt(ctx, s, nil)
	return basedriver.Closing(s.Close, err)
}

// Query implements core.ConnAdapter: it returns the rows as texts, and NULL as an empty text.
func (l *connAdapter) Query(ctx context.Context, query string) ([][]string, error) {
	rows, err := basedriver.Query(ctx, l.base, query, l.Unprepared())
	if basedriver.IsSkip(err) {
		s, failed := basedriver.Prepare(ctx, l.base, query)
		if failed != nil {
			return nil, failed
		}
		defer s.Close()
		rows, err = basedriver.QueryStmt(ctx, s, nil)
	}
	if err != nil {
		return nil, err
	}
	var all [][]string
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case basedriver.IsEnd(err):
			return all, rows.Close()
		case err != nil:
			return nil, basedriver.Closing(rows.Close, err)
		}
		all = append(all, valueTexts(row))
	}
}

func valueTexts(row []driver.Value) []string {
	texts := make([]string, len(row))
	for i, v := range row {
		switch v := v.(type) {
		case nil:
		case []byte:
			texts[i] = string(v)
		default:
			texts[i] = fmt.Sprint(v)
		}
	}
	return texts
}

func (l *connAdapter) Rewrite(
	ctx context.Context, o basedriver.Options, query string, args []driver.NamedValue,
) (to basedriver.Rewritten, refused string, err error) {
	to, refused, err = o.Rewrite(ctx, l.base, query, args)
	if behind, named := l.prepared.Text(to.Query); named && behind != to.Query && refused == "" {
		refused = "the query rewriter returns the name of a prepared statement; return its text"
	}
	if refused == "" {
		refused = l.Misplaces(core.Request{Query: to.Query, Args: to.Args[to.Options:]}, false)
	}
	return to, refused, err
}

func (l *connAdapter) Misplaces(r core.Request, rows bool) string {
	if r.Stmt == nil && l.settings.Misplaces(r.Query, r.Args, rows) {
		return core.NeedsPlaces
	}
	return ""
}

func (l *connAdapter) Keeps(query string, p *rewrite.Plan, rows bool) bool {
	c := &l.cache
	return c.size > 0 && p.Alone && (c.rows || !p.Rows && !rows) && len(query) <= maxCachedText
}

func (l *connAdapter) Follow(query string) { l.cache.follow(query) }

func (l *connAdapter) Follows(query string) bool { return l.cache.size > 0 && session.Changes(query) }

func (l *connAdapter) Close() error { return l.base.Close() }
