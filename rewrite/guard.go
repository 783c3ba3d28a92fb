package rewrite

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// The expressions of this file raise an error inside of the statement where a
// token is stale, so that the statement is applied whole or not at all, and
// says what it met. An expression that raises has to depend on a column, or
// PostgreSQL evaluates it while planning; and it must never be NULL, which would
// raise nothing.
//
// What the guard calls in PostgreSQL is named with its schema, and casts and
// operators that an application can make are left alone: a cast of its own from
// text to bigint might give NULL where the built-in function raises.

// The kinds of marker that a raised error carries.
const (
	markStale   = "stale"   // the row's newer value follows
	markLedger  = "ledger"  // the ledger's value follows
	markScope   = "scope"   // the row's key follows
	markUnknown = "unknown" // no row for the name in the ledger

	// Of these the number that follows is that of a table.
	markConflict  = "conflict" // the row's serial follows
	markAssigned  = "assigned" // likewise
	markRequired  = "required"
	markGone      = "gone"
	markNotSerial = "serial" // what the serial column holds follows
	markLocked    = "locked" // since, expiry and holder of the lock follow
)

// raise writes an expression that raises sqlfence:kind:number:detail, with the
// number of a token or a table; detail is an SQL expression, in parts.
//
// In PostgreSQL nothing can soften it: concat is never NULL, and int8in reads its
// text by itself, where a cast would do what the database has been told.
func (w *writer) raise(kind string, number int, detail ...string) {
	head, tail := "pg_catalog.int8in(pg_catalog.textout(pg_catalog.concat(", ")))"
	if w.dialect == SQLite {
		head, tail = "json_extract('{}', ", ")"
	}
	w.write(head, "'sqlfence:", kind, ":", strconv.Itoa(number), ":'", w.followed())
	w.write(detail...)
	w.write(tail)
}

// followed returns what joins the parts of a raised text.
func (w *writer) followed() string {
	if w.dialect == SQLite {
		return " || "
	}
	return ", "
}

// raiseBoolean is raise where a condition has to stand. The condition is false if
// the raise should yield NULL: then the row is not written.
func (w *writer) raiseBoolean(kind string, token int, detail ...string) {
	w.raise(kind, token, detail...)
	w.write(" IS NOT NULL")
}

// storedMark writes the row's mark as a number that is never NULL. SQLite compares
// a text column as text without the cast.
func (w *writer) storedMark(qualifier string) {
	if w.dialect == SQLite {
		w.write("COALESCE(CAST(", qualifier, ".", w.rules.fence, " AS INTEGER), 0)")
	} else {
		w.write("COALESCE(", qualifier, ".", w.rules.fence, ", 0)")
	}
}

// keyText returns the row's key as text that is compared byte by byte, whatever
// the column's collation.
func (w *writer) keyText(qualifier string) string {
	if w.dialect == SQLite {
		return "CAST(" + qualifier + "." + w.rules.key + " AS TEXT) COLLATE BINARY"
	}
	return qualifier + "." + w.rules.key + `::text COLLATE "C"`
}

// fresh writes the comparison of the row's mark with a token.
func (w *writer) fresh(qualifier string, token int) {
	stored := func() { w.storedMark(qualifier) }
	if w.rules.SingleUse {
		w.compare("<", "int8lt", stored, token)
	} else {
		w.compare("<=", "int8le", stored, token)
	}
}

// compare writes the comparison of a stored value with a token's. PostgreSQL's
// functions take integers only: compared with a column of a floating type, a
// token is equal to those near it.
func (w *writer) compare(operator, function string, stored func(), token int) {
	if w.dialect == SQLite {
		stored()
		w.write(" ", operator, " ")
		w.field(token, fieldValue)
		return
	}
	w.write("pg_catalog.", function, "(")
	stored()
	w.write(", ")
	w.field(token, fieldValue)
	w.write(")")
}

// byKey writes one(token) for the token that covers the row, and otherwise for
// a row that none covers. Without Key the one token covers all.
func (w *writer) byKey(qualifier string, one func(token int), otherwise func(keyText string)) {
	if w.rules.Key == "" {
		one(w.lo)
		return
	}
	key := w.keyText(qualifier)
	w.write("CASE ", key)
	for i := w.lo; i < w.hi; i++ {
		w.write(" WHEN ")
		w.field(i, fieldKey)
		w.write(" THEN ")
		one(i)
	}
	w.write(" ELSE ")
	otherwise(key)
	w.write(" END")
}

// mark writes the assignment of the row's new mark. PostgreSQL takes it as it is
// written for an assignment only: anywhere else it would compare a number with a
// record, which is an error.
func (w *writer) mark(qualifier string) {
	if w.lo == w.hi {
		return
	}
	if w.dialect == Postgres {
		w.write(", (", w.rules.fence, ") = ROW(")
		defer w.write(")")
	} else {
		w.write(", ", w.rules.fence, " = ")
	}
	if w.observe {
		w.risenMark(qualifier)
		return
	}
	w.byKey(qualifier, func(token int) {
		w.write("CASE WHEN ")
		w.fresh(qualifier, token)
		w.write(" THEN ")
		w.field(token, fieldValue)
		w.write(" ELSE ")
		w.raise(markStale, token, qualifier, ".", w.rules.fence)
		w.write(" END")
	}, func(key string) { w.raise(markScope, w.lo, "COALESCE(", key, ", '')") })
}

// risenMark writes the higher one of the row's mark and the token.
func (w *writer) risenMark(qualifier string) {
	greatest := "GREATEST("
	if w.dialect == SQLite {
		greatest = "max("
	}
	w.byKey(qualifier, func(token int) {
		w.write(greatest)
		w.storedMark(qualifier)
		w.write(", ")
		w.field(token, fieldValue)
		w.write(")")
	}, func(string) { w.write(qualifier, ".", w.rules.fence) })
}

// check writes the condition that a row which is written without a mark has to meet.
func (w *writer) check(qualifier string) {
	first := w.tokenCheck
	if w.compares() {
		first = w.serialCheck
	}
	switch tokens := w.lo < w.hi && (w.rules.FenceColumn != "" || w.rules.Key != ""); {
	case !w.rules.locks() || w.observe:
		first(qualifier)
	case !w.compares() && !tokens:
		w.lockCheck(qualifier)
	default:
		w.write("CASE WHEN ")
		first(qualifier)
		w.write(" THEN ")
		w.lockCheck(qualifier)
		w.write(" ELSE ", boolean(w.dialect, false), " END")
	}
}

// tokenCheck is check without the serial and the lock.
func (w *writer) tokenCheck(qualifier string) {
	if w.observe || w.lo == w.hi {
		w.write(boolean(w.dialect, true))
		return
	}
	w.byKey(qualifier, func(token int) {
		if w.rules.FenceColumn == "" {
			w.write(boolean(w.dialect, true))
			return
		}
		w.write("CASE WHEN ")
		w.fresh(qualifier, token)
		w.write(" THEN ", boolean(w.dialect, true), " ELSE ")
		w.raiseBoolean(markStale, token, qualifier, ".", w.rules.fence)
		w.write(" END")
	}, func(key string) { w.raiseBoolean(markScope, w.lo, "COALESCE(", key, ", '')") })
}

// ledgerCondition writes the comparison with the newest tokens issued, where a
// condition may stand. schema is that of the written table with its dot, if the
// statement names one.
func (w *writer) ledgerCondition(schema string) {
	if w.observe || w.lo == w.hi {
		w.write(boolean(w.dialect, true))
		return
	}
	for i := w.lo; i < w.hi; i++ {
		if i > w.lo {
			w.write(" AND ")
		}
		if w.dialect == SQLite {
			w.fileLedgerCheck(i, schema)
		} else {
			w.ledgerCheck(i)
		}
	}
}

// ledgerStatements writes PostgreSQL's comparison with the newest tokens issued,
// for all of the tables: with "WITH" before the statement, or with "" at the
// head of its own WITH.
//
// The UPDATE changes nothing, as its condition is always true or raises; should it
// be false all the same, the division raises. As a data-modifying WITH it always
// runs, and after the main statement has taken its row locks. FOR SHARE reads the
// newest token whatever the snapshot, and holds off the next one until this
// transaction ends.
func (w *writer) ledgerStatements(with string) {
	if w.observe {
		return
	}
	separator := with
	for table := range w.plan.Tables {
		w.choose(table)
		for i := w.lo; i < w.hi && w.rules.Ledger; i++ {
			w.write(separator, " sqlfence_", strconv.Itoa(i),
				" AS (UPDATE fencing_tokens SET token = token / 0 WHERE name = ")
			w.field(i, fieldName)
			w.write(" AND NOT ")
			w.ledgerCheck(i)
			w.write(")")
			separator = ","
		}
	}
	switch {
	case separator == with: // none of the tables has a token
	case with == "":
		w.write(",")
	default:
		w.write(" ")
	}
}

// ledgerCheck writes PostgreSQL's condition that is true or raises.
//
// It takes its turn first, a lock that is granted in the order of the requests:
// shared locks of a row are not, and writers whose transactions overlap could
// hold off the next token for ever.
//
// It compares what it has locked, not what the snapshot shows: a newer token than the
// snapshot's is a serialization failure, which says nothing against the token.
func (w *writer) ledgerCheck(token int) {
	ofName := func() {
		w.write("fencing_tokens WHERE fencing_tokens.name = ")
		w.field(token, fieldName)
	}
	w.write("COALESCE((SELECT CASE WHEN ")
	w.compare("=", "int8eq", func() { w.write("COALESCE(held.token, 0)") }, token)
	w.write(" THEN true ELSE ")
	w.raiseBoolean(markLedger, token, "COALESCE(held.token, 0)")
	w.write(" END FROM (SELECT fencing_tokens.token FROM (SELECT pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended(pg_catalog.concat('sqlfence:', ")
	w.field(token, fieldName)
	w.write("), 0)) OFFSET 0) AS turn, ")
	ofName()
	w.write(" FOR SHARE OF fencing_tokens) AS held), (SELECT ")
	w.raiseBoolean(markUnknown, token, "pg_catalog.count(*)")
	w.write(" FROM ")
	ofName()
	w.write("))")
}

// fileLedgerCheck writes SQLite's condition that is true or raises. A database
// file has one writer, so what is read there stays true to the end of the
// statement, and of its transaction. Without a unique index a name may have
// several rows, of which the highest counts.
func (w *writer) fileLedgerCheck(token int, schema string) {
	const newest = "max(COALESCE(CAST(fencing_tokens.token AS INTEGER), 0))"
	w.write("(SELECT CASE WHEN ")
	w.compare("=", "", func() { w.write(newest) }, token)
	w.write(" THEN 1 WHEN count(*) = 0 THEN ")
	w.raiseBoolean(markUnknown, token, "count(*)")
	w.write(" ELSE ")
	w.raiseBoolean(markLedger, token, newest)
	w.write(" END FROM ", schema, "fencing_tokens WHERE fencing_tokens.name = ")
	w.field(token, fieldName)
	w.write(")")
}

// A Marker is what an error raised by a guard says.
type Marker struct {
	Kind    MarkerKind
	Token   int    // of Stale, NotNewest, OutOfScope and UnknownName: index in Values.Tokens
	Table   int    // of the others: index in Plan.Tables
	Current int64  // of Stale: the row's newer value; of NotNewest: the ledger's value; of Conflict and Assigned: the row's serial
	Key     string // of OutOfScope: the key of the row
	By      string // of Locked: who holds the lock
	Since   int64  // of Locked: when it was taken, in microseconds of Unix time; 0 for unknown
	Expiry  int64  // of Locked: when it lapses, likewise
	Found   string // of NotSerial: what the serial column holds, its beginning
}

// MarkerKind is why a guard raised.
type MarkerKind uint8

// The kinds of marker.
const (
	Stale      MarkerKind = iota + 1
	NotNewest             // the ledger's newest token is another one, older or newer
	NotInteger            // PostgreSQL: the fence column, or the ledger's token, is of no integer type
	OutOfScope
	UnknownName
	Conflict  // the row is at another serial
	Gone      // there was no such row
	Locked    // somebody else holds the row's lock
	NotSerial // the serial column holds no whole number, or the highest one
	Assigned  // the statement assigned a serial that doesn't raise the row's
	Required  // the statement would update a row, and has no serial
)

// ReadMarker finds a guard's marker in the text of a database's error.
func ReadMarker(message string) (Marker, bool) {
	const prefix = "sqlfence:"
	i := strings.Index(message, prefix)
	if i < 0 {
		return Marker{Kind: NotInteger}, comparesOther(message)
	}
	kind, rest, _ := strings.Cut(message[i+len(prefix):], ":")
	digits, detail, ok := strings.Cut(rest, ":")
	number, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return Marker{}, false
	}
	m := Marker{Token: number}
	switch kind {
	case markConflict, markAssigned, markRequired, markGone, markNotSerial, markLocked:
		m = Marker{Table: number}
	}
	switch kind {
	case markStale:
		m.Kind = Stale
		m.Current, err = strconv.ParseInt(leadingDigits(detail), 10, 64)
	case markLedger:
		m.Kind = NotNewest
		m.Current, err = leadingInteger(detail)
	case markScope:
		m.Kind = OutOfScope
		m.Key = quotedDetail(message[:i], detail)
	case markUnknown:
		m.Kind = UnknownName
	case markConflict, markAssigned:
		m.Kind = Conflict
		if kind == markAssigned {
			m.Kind = Assigned
		}
		m.Current, err = leadingInteger(detail)
	case markGone:
		m.Kind = Gone
	case markRequired:
		m.Kind = Required
	case markLocked:
		m.Kind = Locked
		if !m.readLocked(message[:i], detail) {
			return Marker{}, false
		}
	case markNotSerial:
		m.Kind = NotSerial
		m.Found = quotedDetail(message[:i], detail)
	default:
		return Marker{}, false
	}
	return m, err == nil
}

// quotedDetail returns detail up to the quote that closes the one at the end of
// before: the database quotes what it can't read, in the manner of its language.
func quotedDetail(before, detail string) string {
	open, _ := utf8.DecodeLastRuneInString(before)
	close, ok := map[rune]string{'«': "»", '»': "«", '„': "“", '“': "”", '‘': "’", '「': "」"}[open]
	if !ok {
		close = string(open)
	}
	if end := strings.LastIndex(detail, close); end >= 0 {
		detail = detail[:end]
	}
	if open == '\'' {
		detail = strings.ReplaceAll(detail, "''", "'")
	}
	return detail
}

// comparesOther reports whether PostgreSQL has no function to compare a column
// that is of another type than a token.
func comparesOther(message string) bool {
	for _, function := range []string{"int8le", "int8lt", "int8eq"} {
		if strings.Contains(message, "pg_catalog."+function+"(") {
			return true
		}
	}
	return false
}

func leadingInteger(s string) (int64, error) {
	size, negative := strings.CutPrefix(s, "-")
	n, err := strconv.ParseInt(leadingDigits(size), 10, 64)
	if negative {
		n = -n
	}
	return n, err
}

func leadingDigits(s string) string {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return s[:n]
}
