// Package mysql is all that sqlfence knows of MySQL and MariaDB, a file a subject. Other databases have the same files.
package mysql

import (
	"encoding/hex"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Text is what MySQL and MariaDB are written, on InnoDB. What it writes reads alike under every sql_mode,
// character set, time zone and isolation level of the session.
//
// Names and keys of sqlfence's tables are bytes (VARBINARY): a text would be compared by its
// collation, and most take "books " for "books" and "Books" for both.
var Text sqltext.Dialect = text{}

type text struct{}

// Quote writes backquotes: double quotes are a text unless sql_mode has ANSI_QUOTES.
func (text) Quote(name string) string {
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

// Text is in UTF-8 whatever the session's character set. A quote or a backslash in it would
// read in two ways, by NO_BACKSLASH_ESCAPES, and other bytes by the client's character set; so
// such a text is written in hexadecimal. So is the empty one, which would be NULL by MariaDB's
// EMPTY_STRING_IS_NULL.
func (text) Text(s string) string {
	if s == "" {
		return "_utf8mb4 X''"
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '\'' || c == '\\' {
			return "_utf8mb4 X'" + hex.EncodeToString([]byte(s)) + "'"
		}
	}
	return "_utf8mb4'" + s + "'"
}

func (text) Bool(b bool) string {
	if b {
		return "TRUE"
	}
	return "FALSE"
}

func (text) Cast(sqltext.Type) string { return "" }

// Convert names the character set: without it the text would be in the session's.
func (text) Convert(x string, t sqltext.Type) string {
	switch t {
	case sqltext.Text:
		return "CAST(" + x + " AS CHAR CHARACTER SET utf8mb4)"
	case sqltext.Bigint:
		return "CAST(" + x + " AS SIGNED)"
	}
	return x
}

// Now is an integer, of microseconds since 1970: a DATETIME says nothing of its time zone, and
// a TIMESTAMP means two times in the hour that comes twice in autumn, which UNIX_TIMESTAMP
// then mixes up.
//
// It is the time at which the statement started. What has to be later than a wait for a lock
// is a statement of its own, behind one that locks.
//
// SET timestamp moves that time for a session, and with it the clock of all that goes by it. SYSDATE stays, so that
// the two tell a session where they are apart, and then SYSDATE's time counts. It is local, and means two times in
// that hour in autumn; so a statement that has only waited goes by its start. On a server with sysdate-is-now both
// move.
func (text) Now() string {
	return "CASE WHEN TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)) BETWEEN 0 AND 10000000 THEN " + started +
		" ELSE CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED) END"
}

// started is when the statement started by the session's clock.
const started = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

func (d text) After(ticks string) string { return "(" + d.Now() + " + " + ticks + ")" }

func (text) Ticks(d time.Duration) int64 { return sqltext.Ticks(d, time.Microsecond) }

func (text) Micros(time string) string { return "(" + time + ")" }

// CommitsAlone is a condition of MySQL's that holds where a statement commits by itself, and
// begins no other transaction by that. Only MariaDB says whether the text BEGIN has begun one.
const CommitsAlone = "@@autocommit = 1 AND @@completion_type = _utf8mb4'NO_CHAIN' /*M! AND @@in_transaction = 0 */"

// Raising is error 1059 of MariaDB, 3057 or 4163 of MySQL. All of them show the name that no lock can
// have; no sql_mode and no IGNORE softens them. If a server took such a name, the sum would be out
// of range, which is error 1690. The name is never NULL, for which MariaDB raises nothing, nor
// empty, which is NULL by EMPTY_STRING_IS_NULL; what the function yields behind its error may be,
// or the second error would hide the first.
func (text) Raising() (before, between, behind string) {
	return "(18446744073709551615 + GREATEST(1, IS_FREE_LOCK(RPAD(COALESCE(CONVERT(CONCAT(", ", ",
		", ' ') USING utf8mb4), _utf8mb4'-'), 200, _utf8mb4'.'))))"
}

// Raised: error 1690 quotes the expression, and not what its values were.
func (text) Raised(err error) (text string, ok bool) {
	if number, ok, own := dberr.MySQLError(err); ok {
		return own.Error(), number == 1059 || number == 3057 || number == 4163
	}
	return err.Error(), true
}

// Turn: the locks of a row are granted in the order of the requests.
func (text) Turn(string, bool) string { return "" }

func (d text) FindElsewhere(schema, table string) string {
	home := "COALESCE(DATABASE(), " + d.Text("") + ")"
	if schema != "" {
		home = d.Text(schema)
	}
	return sqltext.Whole(d, "SELECT table_schema FROM information_schema.tables WHERE table_name = "+d.Text(table)+
		" AND table_schema <> "+home+" ORDER BY table_schema")
}

// MayMove: a block may have a USE in it, and so may a text that is executed, which the server refuses.
func (text) MayMove(query string, more bool) bool { return more && moves.MatchString(query) }

// A comment that is executed counts as a word's end, as well.
var moves = regexp.MustCompile(`(?is)(?:^|[;\s/*!])use\b`)

func (d text) PlaceInCatalogue(schema, text string) string {
	return ownInCatalogue.ReplaceAllStringFunc(text, func(asks string) string {
		return strings.Replace(asks, "DATABASE()", d.Text(schema), 1)
	})
}

var ownInCatalogue = regexp.MustCompile(`DATABASE\(\)\)? AND (?:\w+\.)?table_name = _utf8mb4'(?:` +
	strings.Join(sqltext.OwnTables, "|") + `)'`)

func (text) Facts() *sqltext.Facts { return facts() }

var facts = sync.OnceValue(func() *sqltext.Facts {
	return &sqltext.Facts{
		Mark:        '?',
		Numbers:     fact.No,
		OwnNumbers:  fact.No,
		Application: fact.No,

		Schema: "database", Path: "by the database that the connection uses",

		Unlimited: " LIMIT 1000000000",

		CreateLedger:   createLedger,
		LedgerTriggers: ledgerTriggers(),
		Issuers:        issuers(),
		FindOwnHome:    "SELECT COALESCE(DATABASE(), " + Text.Text("") + ")",
		Vocabulary:     sqltext.Vocabulary(Text, "", alive), // a promoted replica has no epoch of its own
	}
})

// SessionLock is the name of the lock that the session with an id holds.
func SessionLock(id string) string { return "CONCAT(_utf8mb4'sqlfence:', " + id + ")" }

func alive(row string) string {
	return "(" + row + ".session IS NULL OR IS_USED_LOCK(" + SessionLock(row+".session") + ") IS NOT NULL)"
}
