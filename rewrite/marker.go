package rewrite

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// The guard's expressions raise an error inside of the statement if it must not be applied,
// so that it is applied whole or not at all. The error has the reason as a marker:
// sqlfence:nonce:kind:number:detail. A marker is never NULL, which would raise nothing.
//
// Other errors quote values, which users write. So a marker counts only in an error with the
// code of a raise, and with the rewriter's nonce: 80 random bits, which are in nothing that the
// application stores. An error of a driver that isn't known has no code to be found, and the
// nonce alone decides: without its refusals the application would run a stale write again.

// The kinds of marker that a raised error carries.
const (
	markerStale    = "stale"    // the row's newer token follows, or its negative
	markerLedger   = "ledger"   // the ledger's value follows
	markerScope    = "scope"    // the row's key follows
	markerUnknown  = "unknown"  // no row for the name in the ledger
	markerClaim    = "claim"    // the token follows that names the row, then its claim
	markerUnproven = "unproven" // the row's claim follows, then = and its key, or nothing if that is NULL

	// Of these the number is that of a table, of the others that of a token.
	markerConflict  = "conflict" // the row's serial follows
	markerAssigned  = "assigned" // the row's serial follows
	markerRequired  = "required"
	markerGone      = "gone"
	markerNotSerial = "serial" // what the serial column holds follows
	markerLocked    = "locked" // since, expiry and holder of the lock follow
)

// raise writes an expression that raises a marker; detail is an SQL expression, in
// parts.
func (w *writer) raise(kind string, number int, detail ...string) {
	w.raising(kind, number, func() { w.write(detail...) })
}

// raising is raise with a detail that is written.
func (w *writer) raising(kind string, number int, detail func()) {
	before, between, behind := w.dialect.Raising()
	w.write(before, "'"+markerPrefix, w.nonce, ":", kind, ":")
	w.b.Int(int64(number))
	w.write(":'", between)
	detail()
	w.write(behind)
}

const markerPrefix = "sqlfence:"

// raiseCondition is raise where a condition has to stand. The condition is false if
// the raise should yield NULL.
func (w *writer) raiseCondition(kind string, number int, detail ...string) {
	w.raise(kind, number, detail...)
	w.write(" IS NOT NULL")
}

// A Marker is the reason that a guard's error carries.
type Marker struct {
	Kind MarkerKind
	// of Stale, NotNewest, OutOfScope and UnknownName: index among the tokens of all Values.Tables,
	// in their order
	Token int
	Table int // of the others: index in Plan.Tables
	// of Stale: the row's newer value, or its claim; of NotNewest: the ledger's value; of Conflict and
	// Assigned: the row's serial, or its claim
	Current int64
	Key     string // of OutOfScope: the key of the row
	By      string // of Locked: the holder's ID
	Since   int64  // of Locked: when it was taken, in microseconds of Unix time; 0 for unknown
	Expiry  int64  // of Locked: when it expires, in the same unit
	Found   string // of NotSerial: the value of the serial or claim column, or its beginning
}

// A MarkerKind is the kind of reason for which a guard raised.
type MarkerKind uint8

// The kinds of marker.
const (
	Stale       MarkerKind = iota + 1
	NotNewest              // the ledger's newest token is older or newer
	NotInteger             // PostgreSQL: the fence column, or the ledger's column token, has no integer type
	OutOfScope             // no token covers the row's key
	UnknownName            // the ledger has no row for the token's name; with ClaimOf, that of some token is gone
	Conflict               // the row is at another serial
	Gone                   // the row doesn't exist
	Locked                 // another user holds the row's lock
	NotSerial              // the serial or claim column holds no integer, or the highest one
	Assigned               // the statement assigned a serial or claim that doesn't raise the row's
	Required               // the statement would update a row, and has no serial
)

// ReadMarker finds the marker of one of the rewriter's guards in a database's error. What says
// the same for another reason isn't one: the error of another statement, or of a value that
// reads like a marker. v are the values that the statement was rendered with; nil will do where no table
// has a Claim.
func (r *Rewriter) ReadMarker(err error, v *Values) (Marker, bool) {
	if err == nil || r.dialect == nil {
		return Marker{}, false
	}
	if slices.ContainsFunc(r.dialect.guard.Strict, func(name string) bool { return dberr.NamesFunction(err, name) }) {
		return Marker{Kind: NotInteger}, true
	}
	message, ok := r.dialect.Raised(err)
	prefix := markerPrefix + r.nonce + ":"
	i := strings.Index(message, prefix)
	if !ok || i < 0 {
		return Marker{}, false
	}
	return readMarker(message[:i], message[i+len(prefix):], v)
}

// Marks reports whether a text has the nonce of the rewriter's markers, which the
// application may have shown to a user in an error of the database. Of a statement with such a
// text no marker can be believed.
func (r *Rewriter) Marks(text string) bool { return r.nonce != "" && strings.Contains(text, r.nonce) }

// readMarker reads what follows the nonce; before is what stands before the marker.
func readMarker(before, marker string, v *Values) (Marker, bool) {
	text, _, padded := strings.Cut(marker, sqltext.Padding)
	if padded {
		before = "" // the detail ends there, and quotes in it are its own
	}
	kind, rest, _ := strings.Cut(text, ":")
	digits, detail, ok := strings.Cut(rest, ":")
	number, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return Marker{}, false
	}
	m := Marker{Token: number}
	switch kind {
	case markerConflict, markerAssigned, markerRequired, markerGone, markerNotSerial, markerLocked:
		m = Marker{Table: number}
	}
	switch kind {
	case markerStale:
		m.Kind = Stale
		var size uint64 // 2^63 of the lowest integer
		size, err = strconv.ParseUint(leadingDigits(strings.TrimPrefix(detail, "-")), 10, 64)
		m.Current = int64(min(size, math.MaxInt64))
	case markerLedger:
		m.Kind = NotNewest
		m.Current, err = leadingInteger(detail)
	case markerScope:
		m.Kind = OutOfScope
		m.Key = quotedDetail(before, detail)
	case markerUnknown:
		m.Kind = UnknownName
	case markerClaim:
		err = m.readClaim(detail)
	case markerUnproven:
		err = m.readUnproven(quotedDetail(before, detail), v)
	case markerConflict, markerAssigned:
		m.Kind = Conflict
		if kind == markerAssigned {
			m.Kind = Assigned
		}
		m.Current, err = leadingInteger(detail)
	case markerGone:
		m.Kind = Gone
	case markerRequired:
		m.Kind = Required
	case markerLocked:
		m.Kind = Locked
		if !m.readLocked(before, detail) {
			return Marker{}, false
		}
	case markerNotSerial:
		m.Kind = NotSerial
		m.Found = quotedDetail(before, detail)
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
	for n < len(s) && lex.IsDigit(s[n]) {
		n++
	}
	return s[:n]
}

// readClaim reads what the check of another table's claims raises: token and generation, or -1 where some token's
// row is gone, and it isn't known which; m has the first one's number then.
func (m *Marker) readClaim(detail string) error {
	token, current, _ := strings.Cut(detail, ":")
	n, err := strconv.Atoi(token)
	if err != nil {
		return err
	}
	if n < 0 {
		m.Kind = UnknownName
		return nil
	}
	m.Kind, m.Token = Stale, n
	m.Current, err = leadingInteger(current)
	return err
}

// readUnproven reads what the claim's check raises: the row's generation and key. The key says which of the
// tokens of the row's table is stale; m has the first one's number.
func (m *Marker) readUnproven(detail string, v *Values) (err error) {
	current, key, _ := strings.Cut(detail, ":")
	key, exists := strings.CutPrefix(key, "=")
	if m.Current, err = leadingInteger(current); err != nil {
		return err
	}
	if i := v.tokenOf(m.Token, key); exists && i >= 0 {
		m.Kind, m.Token = Stale, i
		return nil
	}
	*m = Marker{Kind: OutOfScope, Token: m.Token, Key: key}
	return nil
}

// readLocked reads what the lock's check raises: since, expiry and by. A time that is no
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
