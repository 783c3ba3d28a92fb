package rewrite

import (
	"slices"
	"strconv"
	"strings"
)

// A Lock names the columns of the lock that a person takes on a row to edit it.
type Lock struct {
	By     string // who holds it: integer or text; NULL, 0 and '' are nobody
	Since  string // when it was taken
	Expiry string // when it lapses; NULL is at once

	by, since, expiry string // quoted
}

// locks reports whether the table's rows may be locked.
func (t *Table) locks() bool { return t.Lock.By != "" }

// locksFirst reports whether the lock of a row that the statement updates is looked
// at before the row's new values. Where it assigns the serial, that comes first.
func (t *target) locksFirst() bool { return t.rules.locks() && !t.setsSerial }

// insertCheck adds the check for the row of t at a place of its condition.
func (r *reader) insertCheck(at int32, t *target) {
	if t.setsSerial {
		r.insert(at, opTokens, t, t.qualifier)
	} else {
		r.insert(at, opCheck, t, t.qualifier)
	}
}

func (l *Lock) quote(d Dialect) {
	l.by, l.since, l.expiry = quoteName(d, l.By), quoteName(d, l.Since), quoteName(d, l.Expiry)
}

// sharedColumn returns a column of the lock that has another meaning, too.
func (t *Table) sharedColumn() string {
	seen := []string{t.FenceColumn, t.Key, t.Serial}
	for _, c := range []string{t.Lock.By, t.Lock.Since, t.Lock.Expiry} {
		if c != "" && slices.Contains(seen, c) {
			return c
		}
		seen = append(seen, c)
	}
	return ""
}

// lockCheck writes the condition that nobody else holds the row's lock now, by
// the database's clock. Without an editor any holder is somebody else: the
// editor is the empty text then, which holds none.
func (w *writer) lockCheck(qualifier string) {
	l := &w.rules.Lock
	by, since, expiry := qualifier+"."+l.by, qualifier+"."+l.since, qualifier+"."+l.expiry
	text, later, micros := by+`::text COLLATE "C"`, expiry+" > pg_catalog.clock_timestamp()", func(column string) string {
		return "CASE WHEN pg_catalog.isfinite(" + column + ") THEN (extract(epoch FROM " + column + ") * 1000000)::bigint ELSE 0 END"
	}
	if w.dialect == SQLite {
		text, later = "CAST("+by+" AS TEXT) COLLATE BINARY", expiry+" > CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
		micros = func(column string) string { return "COALESCE(CAST(" + column + " AS INTEGER) * 1000, 0)" }
	}
	w.write("CASE WHEN ", by, " IS NULL OR ", text, " IN ('', '0') OR ", text, " = ")
	w.field(0, fieldEditor)
	w.write(" OR NOT COALESCE(", later, ", ", boolean(w.dialect, false), ") THEN ", boolean(w.dialect, true), " ELSE ")
	w.afterLedger(func() {
		separator := w.followed() + "':'" + w.followed()
		w.raise(markLocked, w.table, micros(since), separator, micros(expiry), separator, text)
	})
	w.write(" IS NOT NULL END")
}

// readLocked reads what lockCheck raises: since, expiry and by. A time that is no
// number, such as one beyond all numbers, stays 0.
func (m *Marker) readLocked(before, detail string) (ok bool) {
	since, rest, ok := strings.Cut(detail, ":")
	if !ok {
		return false
	}
	expiry, by, ok := strings.Cut(rest, ":")
	m.By = quotedDetail(before, by)
	if n, err := strconv.ParseInt(since, 10, 64); err == nil {
		m.Since = n
	}
	if n, err := strconv.ParseInt(expiry, 10, 64); err == nil {
		m.Expiry = n
	}
	return ok
}
