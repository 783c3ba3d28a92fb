package session

import (
	"context"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// MayClip reports whether the server may store another number than the assigned one, as far as is known without a
// query: because of the session's settings, or because the statement ignores errors.
func (s *Session) MayClip(ignores bool) bool {
	return (s.Clips || s.changed || ignores) && s.dialect.Narrow != nil && !s.wants.Nothing
}

// Narrow returns the first of a table's columns that can't store every token, and the column's type; empty for none.
// The pool caches the tables without a narrow column.
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
