package session

import (
	"context"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// MayClip reports whether the server may store another number than one that is assigned, as far as it is known without
// asking: in the session, or because the statement ignores errors.
func (s *Session) MayClip(ignores bool) bool {
	return (s.Clips || s.changed || ignores) && s.dialect.Narrow != nil && !s.wants.Nothing
}

// Narrow returns the first of a table's columns that can't store each token, and its type; empty for none. Which tables
// have none is known to the pool.
func (s *Session) Narrow(ctx context.Context, c Conn, table Name, columns []string) (column, typ string, err error) {
	if _, wide := s.database.wide.Load(table); wide {
		return "", "", nil
	}
	rows, err := c.Query(ctx, sqltext.Whole(s.dialect.Text, s.dialect.Columns(table)))
	if err != nil {
		return "", "", unanswered(ctx, err)
	}
	for _, row := range rows {
		if slices.Contains(columns, strings.ToLower(row[0])) && s.dialect.Narrow(strings.ToLower(row[1])) {
			return row[0], row[1], nil
		}
	}
	s.database.wide.Store(table, true)
	return "", "", nil
}
