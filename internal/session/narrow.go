package session

import (
	"context"
	"slices"
	"strings"
)

// MayClip reports, without a query, whether the server may store a lower number than a guarded statement assigns:
// because of the session's settings, as known or changed since, or because the statement ignores errors.
func (s *Session) MayClip(ignores bool) bool {
	return (s.Clips || s.changed || ignores) && s.dialect.Narrow != nil && !s.wants.Nothing
}

// Narrow returns the first of the columns of a table that can't store every token, and its type. Both are empty if
// every column can. The pool caches the tables without such a column.
func (s *Session) Narrow(ctx context.Context, c Conn, table Name, columns []string) (column, typ string, err error) {
	if _, wide := s.database.wide.Load(table); wide {
		return "", "", nil
	}
	rows, err := c.Query(ctx, s.dialect.Columns(table, s.Cut))
	if err != nil {
		return "", "", queryError(ctx, err)
	}
	found := false
	for _, row := range rows {
		if !slices.Contains(columns, strings.ToLower(row[0])) {
			continue
		}
		if s.dialect.Narrow(strings.ToLower(row[1])) {
			return row[0], row[1], nil
		}
		found = true
	}
	if found {
		s.database.wide.Store(table, true)
	}
	return "", "", nil
}
