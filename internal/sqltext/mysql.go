package sqltext

import (
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// MySQL is MySQL and MariaDB, on InnoDB. What it writes reads alike under every sql_mode,
// character set, time zone and isolation level of the session.
//
// Names and keys of sqlfence's tables are bytes (VARBINARY): a text would be compared by its
// collation, and most take "books " for "books" and "Books" for both.
var MySQL Dialect = mysql{}

type mysql struct{}

// CreateLedger: a name has at most 512 bytes, and one that were longer would be cut in
// silence where sql_mode is empty.
func (mysql) CreateLedger() string {
	return `CREATE TABLE IF NOT EXISTS ` + LedgerTable + ` (
	name  varbinary(512) NOT NULL PRIMARY KEY,
	token bigint         NOT NULL
) ENGINE=InnoDB`
}

// Quote writes backquotes: double quotes are a text unless sql_mode has ANSI_QUOTES.
func (mysql) Quote(name string) string {
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

// Text is in UTF-8 whatever the session's character set. A quote or a backslash in it would
// read in two ways, by NO_BACKSLASH_ESCAPES, and other bytes by the client's character set; so
// such a text is written in hexadecimal. So is the empty one, which would be NULL by MariaDB's
// EMPTY_STRING_IS_NULL.
func (mysql) Text(s string) string {
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

func (mysql) Bool(b bool) string {
	if b {
		return "TRUE"
	}
	return "FALSE"
}

// Placeholder has no number: arguments count by their place in the text.
func (mysql) Placeholder(int, Type) string { return "?" }

func (mysql) Cast(Type) string { return "" }

// Convert names the character set: without it the text would be in the session's.
func (mysql) Convert(x string, t Type) string {
	switch t {
	case Text:
		return "CAST(" + x + " AS CHAR CHARACTER SET utf8mb4)"
	case Bigint:
		return "CAST(" + x + " AS SIGNED)"
	}
	return x
}

// Now is an integer, of microseconds since 1970: a DATETIME says nothing of its time zone, and
// a TIMESTAMP means two times in the hour that comes twice in autumn, which UNIX_TIMESTAMP
// then mixes up.
//
// It is the time at which the statement started. What has to be later than a wait for a lock
// is a statement of its own, behind one that locks. SYSDATE, which is evaluated later, is
// the same as NOW on a server with sysdate-is-now, and is local time.
func (mysql) Now() string { return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))" }

func (d mysql) After(ticks string) string { return "(" + d.Now() + " + " + ticks + ")" }

func (mysql) Ticks(d time.Duration) int64 { return ticks(d, time.Microsecond) }

func (mysql) Micros(time string) string { return "(" + time + ")" }

// CommitsAlone is a condition of MySQL's that holds where a statement commits by itself, and
// begins no other transaction by that.
const CommitsAlone = "@@autocommit = 1 AND @@completion_type = _utf8mb4'NO_CHAIN'"

// Raise is error 1059 of MariaDB, 3057 or 4163 of MySQL. All of them show the name that no lock can
// have; no sql_mode and no IGNORE softens them. If a server took such a name, the sum would be out
// of range, which is error 1690. The name is never NULL, for which MariaDB raises nothing, nor
// empty, which is NULL by EMPTY_STRING_IS_NULL; what the function yields behind its error may be,
// or the second error would hide the first.
func (d mysql) Raise(parts ...string) string { return raise(d, parts) }

func (mysql) Raising() (before, between, behind string) {
	return "(18446744073709551615 + GREATEST(1, IS_FREE_LOCK(RPAD(COALESCE(CONVERT(CONCAT(", ", ",
		", ' ') USING utf8mb4), _utf8mb4'-'), 200, _utf8mb4'.'))))"
}

// Raised: error 1690 quotes the expression, and not what its values were.
func (mysql) Raised(err error) (text string, ok bool) {
	if number, ok, own := dberr.MySQLError(err); ok {
		return own.Error(), number == 1059 || number == 3057 || number == 4163
	}
	return err.Error(), true
}

// Padding is what follows the text of a raise in MySQL's message, or some of it.
const Padding = " ......"

// Turn: the locks of a row are granted in the order of the requests.
func (mysql) Turn(string, bool) string             { return "" }
func (mysql) Turning(bool) (before, behind string) { return "", "" }

func (mysql) LockPrivilege() string { return "" }

// Floor: a promoted replica says nothing of that.
func (d mysql) Floor() string { return start(d) }

func (d mysql) FindElsewhere(schema, table string) string {
	home := "COALESCE(DATABASE(), " + d.Text("") + ")"
	if schema != "" {
		home = d.Text(schema)
	}
	return "SELECT table_schema FROM information_schema.tables WHERE table_name = " + d.Text(table) + " AND table_schema <> " + home + " ORDER BY table_schema"
}

func (mysql) FindOwnHome() string { return "SELECT COALESCE(DATABASE(), " + MySQL.Text("") + ")" }

// MayMove: a block may have a USE in it, and so may a text that is executed, which the server refuses.
func (mysql) MayMove(query string, more bool) bool { return more && movesMySQL.MatchString(query) }

// A comment that is executed counts as a word's end, as well.
var movesMySQL = regexp.MustCompile(`(?is)(?:^|[;\s/*!])use\b`)

func (mysql) SchemaWords() (schema, path string) {
	return "database", "by the database that the connection uses"
}

func (mysql) OneApplication() bool { return false }

func (d mysql) placeInCatalogue(schema, text string) string {
	return ownInCatalogue.ReplaceAllStringFunc(text, func(asks string) string {
		return strings.Replace(asks, "DATABASE()", d.Text(schema), 1)
	})
}

var ownInCatalogue = regexp.MustCompile(`DATABASE\(\)\)? AND (?:\w+\.)?table_name = _utf8mb4'(?:` + strings.Join(OwnTables, "|") + `)'`)

func (mysql) mark() byte     { return '?' }
func (mysql) numbered() bool { return false }
func (mysql) counts() bool   { return false }

func (mysql) vocabulary() Pieces { return mysqlVocabulary }

var mysqlVocabulary = vocabulary(mysql{})

// A Kept is a column of one of sqlfence's tables on MySQL.
type Kept struct {
	Name  string
	Bytes int // that a varbinary holds; 0: it is a bigint
}

// Unfit is a query for the faults of a table on MySQL that another client may have created, or
// NULL; no rows without the table. Each of unique is a list, with commas, of columns that have to
// be unique together. A text would be compared by its collation, a short column cut in silence
// where sql_mode is empty, and an engine without transactions or locks of rows keeps nothing apart.
func Unfit(table string, columns []Kept, unique ...string) string {
	const of = "table_schema = t.table_schema AND table_name = t.table_name AND "
	text := func(s string) string { return MySQL.Text(s) }
	var b strings.Builder
	b.WriteString("SELECT CASE\n\tWHEN COALESCE(t.engine, " + text("") + ") <> _utf8mb4'InnoDB' THEN _utf8mb4'it is " +
		"not a table of the engine InnoDB'")
	for _, c := range columns {
		want, is := "bigint", "data_type = _utf8mb4'bigint'"
		if c.Bytes > 0 {
			bytes := strconv.Itoa(c.Bytes)
			want, is = "varbinary("+bytes+")", "data_type = _utf8mb4'varbinary' AND character_octet_length >= "+bytes
		}
		b.WriteString("\n\tWHEN NOT EXISTS (SELECT 1 FROM information_schema.columns WHERE " + of + "LOWER(column_name) " +
			"= " + text(c.Name) +
			" AND " + is + ") THEN " + text("its column "+c.Name+" is not a "+want))
	}
	for _, list := range unique {
		names := strings.Split(list, ", ")
		for i, name := range names {
			names[i] = text(name)
		}
		b.WriteString("\n\tWHEN NOT EXISTS (SELECT 1 FROM information_schema.statistics WHERE " + of + "non_unique = 0 GROUP BY index_name HAVING COUNT(*) = " +
			strconv.Itoa(len(names)) + " AND MIN(LOWER(column_name) IN (" + strings.Join(names, ", ") + ")) AND MAX(sub_part) IS NULL) THEN " + text(list+" is not unique"))
	}
	b.WriteString(" END\nFROM information_schema.tables AS t WHERE t.table_schema = DATABASE() AND t.table_name = " + text(table))
	return b.String()
}
