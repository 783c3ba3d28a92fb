package rowlock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// maxTries bounds how often a lockUpdate is sent while the row's state doesn't explain its refusal.
const maxTries = 100

// A lockUpdate is one conditional UPDATE of a row's lock.
type lockUpdate struct {
	checkedEdit
	set        string // the SET list
	allowed    string // the condition on the lock: {mine} or {open}
	mustHold   bool   // a user who doesn't hold the lock is refused
	anyVersion bool   // the row may be at any version
	load       string // a list of columns to read; or empty
	dest       []any  // the variables for them
}

func (u *lockUpdate) fragments(t *Table) sqltext.Fragments {
	p := keyFragments(u.key)
	p["user"] = t.userFragment(u.user)
	p["ttl"] = sqltext.Value(t.dialect.Ticks(u.TTL))
	p["expected"] = sqltext.Value(u.Serial)
	p["set"] = sqltext.SQL(u.set)
	p["condition"] = sqltext.SQL("{versioned} AND {unchanged} AND " + u.allowed)
	if u.anyVersion {
		p["condition"] = sqltext.SQL("{versioned} AND " + u.allowed)
	}
	p["load"] = sqltext.Raw("")
	if u.load != "" {
		p["load"] = sqltext.Raw(", " + u.load)
	}
	return p
}

// apply sends u, and returns the lock or the reason for a refusal.
func (t *Table) apply(ctx context.Context, q owned, u lockUpdate) (Lock, error) {
	for range maxTries {
		s, err := t.dialect.sendUpdate(ctx, q, t, u)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return Lock{}, errGone(t.name, u.ID)
		case err != nil:
			return Lock{}, err
		case s.granted:
			return s.lock(), nil
		}
		if refusal := t.refusal(u, s); refusal != nil {
			return Lock{}, refusal
		}
		// The other lock has just lapsed, or, in SQLite without a transaction, the row has changed meanwhile.
	}
	return Lock{}, errors.New("the UPDATE of the lock's columns had no effect; look for a trigger or " +
		"a rule on the table")
}

// refusal returns why u was refused on a row in state s; nil if it would be granted now.
func (t *Table) refusal(u lockUpdate, s rowState) error {
	lock := s.lock()
	if _, ok := s.serial.(int64); !ok {
		return fmt.Errorf("the version column %s holds %v (%[2]T), want an integer", t.columns.serial, s.serial)
	}
	switch {
	case !u.anyVersion && lock.Serial != u.Serial:
		return &sqlfence.ConflictError{Table: t.name, Expected: u.Serial, Current: lock.Serial}
	case s.live:
		return &sqlfence.LockedError{Table: t.name, By: lock.By, Since: lock.Since, Expiry: lock.Expiry}
	case u.mustHold:
		return ErrNotHeld
	}
	return nil
}

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

// readState runs a statement that yields one row at most, and returns sql.ErrNoRows if it yields none. The row begins
// with the five columns of {state}; a sixth reports whether a lockUpdate was granted. If so, dest gets the loaded
// columns, which follow the statement's own columns; own is their number.
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
