package rowlock

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// A rowState is what a statement has read of a row's version and lock.
type rowState struct {
	serial        any
	by            sql.NullString
	since, expiry sql.NullInt64
	live          bool
	granted       bool // a lockUpdate was applied
}

// lock returns the state as a Lock.
func (s rowState) lock() Lock {
	serial, _ := s.serial.(int64)
	return Lock{serial, s.by.String, fromMicros(s.since), fromMicros(s.expiry)}
}

// fromMicros returns a time that the database gave as {micros}; the zero one for NULL.
func fromMicros(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}

// readState runs a statement that yields one row at most, with {state} first, and returns
// sql.ErrNoRows if there is no row. A sixth column says whether a lockUpdate was granted.
// If it was, the columns after the first own ones go to dest.
func readState(ctx context.Context, q querier, text string, args, dest []any, own int) (s rowState, err error) {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return s, err
	}
	defer rows.Close()
	found := rows.Next()
	if found {
		if err := s.scan(rows, dest, own); err != nil {
			return s, err
		}
	}
	// To the very end: a database may answer with the row first and then fail to
	// commit.
	for rows.Next() {
	}
	if err := rows.Err(); err != nil {
		return s, err
	}
	if !found {
		return s, sql.ErrNoRows
	}
	return s, nil
}

// scan reads one row.
func (s *rowState) scan(rows *sql.Rows, dest []any, own int) error {
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	var ignored any
	all := []any{&s.serial, &s.by, &s.since, &s.expiry, &s.live, &s.granted}
	for len(all) < len(names) {
		all = append(all, &ignored)
	}
	all = all[:len(names)]
	if err := rows.Scan(all...); err != nil {
		return err
	}
	if !s.granted || len(dest) == 0 {
		return nil
	}
	if loaded := len(names) - own; loaded != len(dest) {
		return fmt.Errorf("%d columns to load into %d variables; pass one variable for each column", loaded, len(dest))
	}
	copy(all[own:], dest)
	return rows.Scan(all...)
}
