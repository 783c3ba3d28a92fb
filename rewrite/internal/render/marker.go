package render

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// If a statement must not be applied, the guard's expressions throw an error inside the statement, so that the database
// applies the whole statement or nothing. The error contains the reason as a marker: sqlfence:nonce:kind:number:detail.
// A marker is never NULL, because NULL would throw no error.
//
// Other errors quote values, which users write. So a marker counts only in an error with the code that [sqltext.Throw]
// causes, and with the rewriter's nonce: 80 random bits, which no stored data of the application contains. The errors
// of an unknown driver have no readable code. There the nonce alone decides, because without the refusal's type the
// application would repeat a stale write.

// The checks of claims use separate kinds in their errors. ReadMarker translates them to the kinds of package guard.
const (
	byClaim    guard.Kind = "claim"    // the token follows that names the row, then its claim or goneRow
	byRowClaim guard.Kind = "unproven" // the row's claim follows, then = and its key, or nothing if that is NULL
	byTakeover guard.Kind = "taken"    // the same of a row that is taken over
)

// goneRow replaces the claim in an error about a row that doesn't exist any more.
const goneRow = "gone"

// throw writes an expression that throws an error with a marker. detail is the SQL of the marker's detail, in parts.
func (w *writer) throw(kind guard.Kind, number int, detail ...string) {
	w.throwDetail(kind, number, func() { w.write(detail...) })
}

// throwDetail is throw, but a function writes the SQL of the detail.
func (w *writer) throwDetail(kind guard.Kind, number int, detail func()) {
	before, between, behind := w.Dialect.Throwing()
	w.write(before, "'"+markerPrefix, w.Nonce, ":", string(kind), ":")
	w.b.Int(int64(number))
	w.write(":'", between)
	detail()
	w.write(behind)
}

const markerPrefix = "sqlfence:"

// throwCondition writes throw's expression as a condition. The condition is false if the expression yields NULL instead
// of throwing an error.
func (w *writer) throwCondition(kind guard.Kind, number int, detail ...string) {
	w.throw(kind, number, detail...)
	w.write(" IS NOT NULL")
}

// ReadMarker finds the marker of a guard with a nonce in a database's error.
func (d *Dialect) ReadMarker(err error, nonce string, values func() *Values) (guard.Marker, bool) {
	if slices.ContainsFunc(d.Guard.Strict, func(name string) bool { return dberr.NamesFunction(err, name) }) {
		return guard.Marker{Kind: guard.NotInteger}, true
	}
	message, ok := d.Thrown(err)
	prefix := markerPrefix + nonce + ":"
	i := strings.Index(message, prefix)
	if !ok || i < 0 {
		return guard.Marker{}, false
	}
	return readMarker(message[:i], message[i+len(prefix):], values)
}

// readMarker reads the text after the nonce; before is the text before the marker.
func readMarker(before, marker string, values func() *Values) (guard.Marker, bool) {
	text, _, padded := strings.Cut(marker, sqltext.Padding)
	if padded {
		before = "" // the padding ends the detail, and quotes in the detail belong to it
	}
	kind, rest, _ := strings.Cut(text, ":")
	digits, detail, ok := strings.Cut(rest, ":")
	number, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return guard.Marker{}, false
	}
	m := guard.Marker{Kind: guard.Kind(kind)}
	switch m.Kind {
	case guard.Conflict, guard.Assigned, guard.Required, guard.Gone, guard.NotSerial, guard.Locked,
		guard.Reshaped:
		m.Table = number
	default:
		m.Token = number
	}
	switch m.Kind {
	case guard.Stale:
		var size uint64 // 2^63 of the lowest integer
		size, err = strconv.ParseUint(leadingDigits(strings.TrimPrefix(detail, "-")), 10, 64)
		m.Current = int64(min(size, math.MaxInt64))
	case guard.NotNewest, guard.Conflict, guard.Assigned:
		m.Current, err = leadingInteger(detail)
	case guard.OutOfScope:
		m.Key = quotedDetail(before, detail)
	case guard.NotSerial:
		m.Found = quotedDetail(before, detail)
	case guard.UnknownName, guard.Gone, guard.Required, guard.Reshaped:
	case guard.Locked:
		if !readLocked(&m, before, detail) {
			return guard.Marker{}, false
		}
	case byClaim:
		err = readClaim(&m, detail)
	case byRowClaim, byTakeover:
		err = readUnproven(&m, quotedDetail(before, detail), values)
	default:
		return guard.Marker{}, false
	}
	return m, err == nil
}

// quotedDetail returns detail up to the quote that closes the quote at the end of before. The database quotes a value
// that it can't read, in the style of its language.
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

// readClaim reads the details of a failed check of another table's claims: token and claim value. The token is -1 if a
// row is missing, and too many tokens ([mostNamed]) were checked to find which; m.Token is then the first.
func readClaim(m *guard.Marker, detail string) error {
	token, current, _ := strings.Cut(detail, ":")
	n, err := strconv.Atoi(token)
	if err != nil {
		return err
	}
	if n < 0 {
		m.Kind = guard.UnknownName
		return nil
	}
	m.Kind, m.Token, m.RowGone = guard.Stale, n, strings.HasPrefix(current, goneRow)
	if !m.RowGone {
		m.Current, err = leadingInteger(current)
	}
	return err
}

// readUnproven reads the details in the error of the claim's check: the row's claim value and key. The key shows which
// of the table's tokens is stale. m.Token is at first the index of the table's first token.
func readUnproven(m *guard.Marker, detail string, values func() *Values) (err error) {
	kind := guard.Stale
	if m.Kind == byTakeover {
		kind = guard.NotNewest
	}
	current, key, _ := strings.Cut(detail, ":")
	key, exists := strings.CutPrefix(key, "=")
	if m.Current, err = leadingInteger(current); err != nil {
		return err
	}
	if exists && values != nil {
		i := values().tokenOf(m.Token, key)
		if i < 0 && m.Kind == byTakeover {
			i = values().spellingOf(m.Token, key, m.Current)
		}
		if i >= 0 {
			m.Kind, m.Token = kind, i
			return nil
		}
	}
	*m = guard.Marker{Kind: guard.OutOfScope, Token: m.Token, Key: key}
	return nil
}

// readLocked reads the details in the error of the edit lock's check: since, expiry and by. A time that isn't an int64,
// such as a time out of range, stays 0.
func readLocked(m *guard.Marker, before, detail string) (ok bool) {
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
