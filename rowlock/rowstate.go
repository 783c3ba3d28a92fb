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

func (s rowState) lock() Lock {
	serial, _ := s.serial.(int64)
	return Lock{serial, s.by.String, fromMicros(s.since), fromMicros(s.expiry)}
}

// fromMicros returns a time of {micros}; the zero one for NULL.
func fromMicros(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}

// readState runs a statement that yields one row at most, with {state} first, and returns sql.ErrNoRows without a row.
// A sixth column says whether a lockUpdate was granted. If so, the columns after the first own ones go to dest.
func readState(ctx context.Context, q owned, text string, args, dest []any, own int) (s rowState, err error) {
	found := false
	err = q.each(ctx, func(rows *sql.Rows) error {
		if found {
			return nil
		}
		found = true
		return s.scan(rows, dest, own)
	}, text, args...)
	if err == nil && !found {
		err = sql.ErrNoRows
	}
	return s, err
}

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
