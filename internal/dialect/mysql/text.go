// Package mysql has all that is specific to MySQL and MariaDB, a file a subject. Other databases have the same files.
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

// Text builds SQL for MySQL and MariaDB, on InnoDB. The SQL means the same under every sql_mode, character set, time
// zone and isolation level of the session.
//
// Names and keys of sqlfence's tables are bytes (VARBINARY): in most collations of text columns "books", "books " and
// "Books" are equal.
var Text sqltext.Dialect = text{}

type text struct{}

// Quote writes backquotes: double quotes begin a string unless sql_mode has ANSI_QUOTES.
func (text) Quote(name string) string {
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

// Text returns a constant in UTF-8 whatever the session's character set. Quotes and backslashes depend on
// NO_BACKSLASH_ESCAPES, and other bytes on the client's character set; so a text with these is written in hexadecimal.
// So is the empty text, because MariaDB's EMPTY_STRING_IS_NULL would make it NULL between plain quotes.
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

// Now is an integer, of microseconds since 1970: a DATETIME has no time zone, and a TIMESTAMP in local time means two
// times in the hour that comes twice in autumn, which UNIX_TIMESTAMP can't tell apart.
//
// Now is the statement's start. A time that must be later than a wait for a lock needs a separate statement after the
// locking statement.
//
// SET timestamp moves NOW in a session, but not SYSDATE. If SYSDATE is before NOW or more than 10 s after NOW, Now uses
// SYSDATE. Otherwise Now uses NOW, the statement's start, because SYSDATE is local time, with two meanings in that hour
// in autumn. On a server with sysdate-is-now SET timestamp moves both.
func (text) Now() string {
	return "CASE WHEN TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)) BETWEEN 0 AND 10000000 THEN " + started +
		" ELSE CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED) END"
}

// started is the statement's start by the session's clock.
const started = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

func (d text) After(ticks string) string { return "(" + d.Now() + " + " + ticks + ")" }

func (text) Ticks(d time.Duration) int64 { return sqltext.Ticks(d, time.Microsecond) }

func (text) Micros(time string) string { return "(" + time + ")" }

// CommitsAlone is a condition: a statement commits automatically, and no new transaction begins with the commit. MySQL
// doesn't show a transaction that the SQL statement BEGIN has begun, so there the condition is true within one.
const CommitsAlone = "@@autocommit = 1 AND @@completion_type = _utf8mb4'NO_CHAIN' /*M! AND @@in_transaction = 0 */"

// Throwing passes the text to IS_FREE_LOCK as the name of a lock, and the name is too long: error 1059 of MariaDB, 3057
// or 4163 of MySQL. These errors show the name; no sql_mode and no IGNORE softens them. If a server accepted the name,
// the sum would be out of range, which is error 1690. The name is never NULL, for which MariaDB throws no error, nor
// empty, which is NULL under EMPTY_STRING_IS_NULL. After its error IS_FREE_LOCK may return NULL, so GREATEST and the
// sum are NULL and throw no second error, which would hide the first.
func (text) Throwing() (before, between, behind string) {
	return throwsFirst + "IS_FREE_LOCK(" + throwsText, ", ", throwsLast + ")))"
}

// Parts of an expression that passes a function a text that is too long for it.
const (
	throwsFirst = "(18446744073709551615 + GREATEST(1, "
	throwsText  = "RPAD(COALESCE(CONVERT(CONCAT("
	throwsLast  = ", ' ') USING utf8mb4), _utf8mb4'-'), 200, _utf8mb4'.')"
)

// Thrown: error 1690 quotes the expression without its values.
func (text) Thrown(err error) (text string, ok bool) {
	number, ok, own := dberr.MySQLError(err)
	if !ok {
		return err.Error(), true
	}
	if text, ok := tabletError(own.Error()); ok {
		return text, true
	}
	return own.Error(), number == 1059 || number == 3057 || number == 4163
}

// AdvisoryLock: row locks are granted in the order of the requests.
func (text) AdvisoryLock(string, bool) string { return "" }

func (d text) FindElsewhere(schema, table string) string {
	home := "COALESCE(DATABASE(), " + d.Text("") + ")"
	if schema != "" {
		home = d.Text(schema)
	}
	return sqltext.Whole(d, "SELECT table_schema FROM information_schema.tables WHERE table_name = "+d.Text(table)+
		" AND table_schema <> "+home+" ORDER BY table_schema")
}

// MayChangeSchema: a block may contain USE. The server refuses USE in dynamic SQL.
func (text) MayChangeSchema(query string, more bool) bool { return more && moves.MatchString(query) }

// A comment with code ends a word.
var moves = regexp.MustCompile(`(?is)(?:^|[;\s/*!])use\b`)

func (d text) PlaceInCatalogue(schema, text string) string {
	return ownInCatalogue.ReplaceAllStringFunc(text, func(asks string) string {
		return strings.Replace(asks, "DATABASE()", d.Text(schema), 1)
	})
}

var ownInCatalogue = regexp.MustCompile(`DATABASE\(\)\)? AND (?:\w+\.)?table_name = _utf8mb4'(?:` +
	strings.Join(sqltext.OwnTables, "|") + `)'`)

func (text) Capabilities() *sqltext.Capabilities { return capabilities() }

var capabilities = sync.OnceValue(func() *sqltext.Capabilities {
	return &sqltext.Capabilities{
		Placeholder: '?',
		Numbers:     fact.No,
		OwnNumbers:  fact.No,
		// In most collations "books" equals "BOOKS", and in nearly all "books ".
		KeyText:     [2]string{"CAST(CONVERT(", " USING utf8mb4) AS BINARY)"},
		LocksFirst:  fact.No,
		Application: fact.No,

		Schema: "database", Path: "by the database that the connection uses",

		Unlimited: " LIMIT 1000000000",

		CreateLedger:     createLedger,
		LedgerTriggers:   ledgerTriggers(),
		Issuers:          issuers(),
		FindLedgerSchema: "SELECT COALESCE(DATABASE(), " + Text.Text("") + ")",
		Vocabulary:       sqltext.Vocabulary(Text, "", alive), // a promoted replica has no epoch of its own
	}
})

// SessionLock returns the name of the lock that the session with this id holds.
func SessionLock(id string) string { return "CONCAT(_utf8mb4'sqlfence:', " + id + ")" }

func alive(row string) string {
	return "(" + row + ".session IS NULL OR IS_USED_LOCK(" + SessionLock(row+".session") + ") IS NOT NULL)"
}
