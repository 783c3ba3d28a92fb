// Package postgres is all that sqlfence knows of PostgreSQL, a file a subject. Other databases have the same files.
package postgres

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Text is what PostgreSQL is written. Functions are named with their schema, so that nothing of the
// same name in the search path stands before them.
//
// Beside the pieces that every dialect has, its statements know {durable}, {turn name},
// {try name}, which is true if the turn is free and taken, {share name}, which is true if the turn is shared because
// no session has the turn alone or waits for that, {seen name}, and {holds number}, which is true if this session holds
// the lock that stands for the session of ephemeral leases with that number.
var Text sqltext.Dialect = text{}

type text struct{}

func (text) Convert(x string, t sqltext.Type) string {
	if t == sqltext.Text {
		return "CAST(" + x + " AS pg_catalog.text)"
	}
	return sqltext.Convert(x, t)
}

func (text) Quote(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// Text doesn't depend on standard_conforming_strings.
func (text) Text(s string) string {
	quoted := sqltext.QuoteText(s)
	if strings.IndexByte(s, '\\') >= 0 {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

func (text) Bool(b bool) string { return strconv.FormatBool(b) }

// Cast: PostgreSQL takes an untyped argument for text in most places.
func (text) Cast(t sqltext.Type) string {
	switch t {
	case sqltext.Text:
		return "::pg_catalog.text"
	case sqltext.Bigint:
		return "::bigint"
	}
	return ""
}

// Now: now() would be the start of the transaction, and a lease shorter by the time that
// its statement waited.
func (text) Now() string { return "pg_catalog.clock_timestamp()" }

func (d text) After(ticks string) string {
	return "pg_catalog.timestamptz_pl_interval(" + d.Now() + ", " + Micros(ticks) + ")"
}

// Micros makes an interval of an integer expression.
func Micros(n string) string { return "pg_catalog.mul_d_interval(" + n + ", interval '1 microsecond')" }

func (text) Ticks(d time.Duration) int64 { return sqltext.Ticks(d, time.Microsecond) }

// Micros: timestamps go on for some years after the last that is a bigint of microseconds. Before PostgreSQL 14
// extract returns a double, and this is the last one that is a bigint.
func (text) Micros(time string) string {
	return "CASE WHEN pg_catalog.isfinite(" + time + ") THEN LEAST(extract(epoch FROM " + time +
		") OPERATOR(pg_catalog.*) 1000000, " +
		"9223372036854774784) END::bigint"
}

// Raising is of type bigint, and raises 22P02. No cast of the database's own softens it:
// concat is never NULL, and int8in reads its text by itself.
func (text) Raising() (before, between, behind string) {
	return "pg_catalog.int8in(pg_catalog.textout(pg_catalog.concat(", ", ", ")))"
}

func (text) Raised(err error) (text string, ok bool) {
	if code, ok, own := dberr.PostgresError(err); ok {
		return own.Error(), code == dberr.InvalidText
	}
	return err.Error(), true
}

func (text) Turn(name string, shared bool) string {
	lock := "pg_advisory_xact_lock("
	if shared {
		lock = "pg_advisory_xact_lock_shared("
	}
	before, behind := turning(lock)
	return before + name + behind
}

func turning(lock string) (before, behind string) {
	before, behind, _ = strings.Cut(TurnOf("|"), "|")
	return "pg_catalog." + lock + before, behind + ")"
}

// TurnOf returns the number of the advisory lock that is the turn of a name, which is an expression, too.
func TurnOf(name string) string {
	return "pg_catalog.hashtextextended(pg_catalog.concat('sqlfence:', " + name + "), 0)"
}

// epoch is another one for each timeline of the server, which a promotion begins, or the end of a restore: it
// has 10^10 tokens. Behind the first one it rises with the clock, since two standbys that are promoted one
// after the other from the same past have the same timeline: docs/adr/0031.
//
// It reads the timeline from the first eight hexadecimal digits of the name of the
// WAL file that is being written. The bound keeps the product within a bigint; there it
// has reached the highest token. Beyond the first timeline the tenths of seconds since 2026 are added, up to
// the timeline's last number; the time is that of the statement's start, so that the value is the same throughout it.
const epoch = "(SELECT pg_catalog.int8pl(pg_catalog.int8mul(LEAST(t.n, 90000), 10000000000), " +
	"pg_catalog.int8mul(LEAST(t.n, 1), LEAST(GREATEST(pg_catalog.int8mi((extract(epoch FROM " +
	"pg_catalog.statement_timestamp()) OPERATOR(pg_catalog.*) 10)::bigint, 17672256000), 0), 9999999999)))" +
	" FROM (SELECT pg_catalog.int8mi(pg_catalog.concat('x', pg_catalog.substr(pg_catalog.pg_walfile_name(" +
	"pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::bigint, 1) AS n OFFSET 0) AS t)"

// durable is an expression that has the statement's transaction wait until its commit is on disk,
// also where synchronous_commit is off: a server that crashed would else give the same tokens
// again. It is volatile, so that it is evaluated though its value isn't used, and holds for this
// transaction only.
const durable = "CASE WHEN pg_catalog.texteq(pg_catalog.current_setting('synchronous_commit'), 'off')" +
	" THEN pg_catalog.set_config('synchronous_commit', 'on', true) END"

// readsCommitted is a condition: each statement sees what was committed before it.
const readsCommitted = "pg_catalog.starts_with(pg_catalog.current_setting('transaction_isolation'), 'read ')"

// seen is a condition for a statement that may add the name to the ledger, an
// expression of type text, above the floor. Above READ COMMITTED the statement's snapshot
// may be older than a Repair that it has waited for; a name that Repair has raised
// is a serialization failure then, but one that is new would begin too low. So it
// raises there, [sqltext.Seen], and the name has to be added first.
func seen(name string) string {
	return "CASE WHEN " + readsCommitted + " THEN true" +
		" WHEN EXISTS (SELECT FROM " + sqltext.LedgerTable + " WHERE name = " + name + ") THEN true" +
		" ELSE " + sqltext.Raise(Text, "'"+sqltext.Seen+"'", name) + " IS NOT NULL END"
}

// FindElsewhere: a temporary table is another session's, or stands before them all.
func (d text) FindElsewhere(schema, table string) string {
	other := "NOT pg_catalog.pg_table_is_visible(c.oid)"
	if schema != "" {
		other = "n.nspname <> " + d.Text(schema)
	}
	return Qualified("SELECT n.nspname::text FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON " +
		"n.oid = c.relnamespace" +
		" WHERE c.relname = " + d.Text(table) + " AND c.relkind IN ('r', 'p', 'v', 'f') " +
		"AND c.relpersistence <> 't' AND " +
		"" + other + " ORDER BY n.nspname")
}

// MayMove: SET SCHEMA is another way to write SET search_path, RESET ALL and DISCARD ALL undo it,
// RESET ROLE and code may do so, too. A role's own schema may be in the path.
func (text) MayMove(query string, more bool) bool {
	return mentions(query, "search", "_path") || more && movesPostgres.MatchString(query) || setsUnseen(query) ||
		mentions(query, "set", "_config") && setsRole.MatchString(query)
}

// setsUnseen reports whether a text may set a setting without showing its name: that of set_config
// is no plain constant, a view changes them, or names are spelled in Unicode.
func setsUnseen(query string) bool {
	spells := strings.Contains(query, `U&"`) || strings.Contains(query, `u&"`)
	return spells || mentions(query, "pg", "_settings") && changesSettings.MatchString(query) ||
		mentions(query, "set", "_config") && len(callsSetConfig.FindAllStringIndex(query, -1)) !=
			len(callsSetConfigPlainly.FindAllStringIndex(query, -1))
}

var (
	changesSettings       = regexp.MustCompile(`(?is)update.*pg_settings`)
	callsSetConfig        = regexp.MustCompile(`(?i)set_config`)
	callsSetConfigPlainly = regexp.MustCompile(`(?i)set_config\s*\(\s*'[a-z0-9_.]+'\s*,`)
	setsRole              = regexp.MustCompile(`(?i)'(?:role|session_authorization)'`)
)

// mentions reports whether a name stands in a text, in any case; behind is what it has from its
// underscore on.
func mentions(query, before, behind string) bool {
	for at := 0; ; at++ {
		i := strings.IndexByte(query[at:], '_')
		if i < 0 {
			return false
		}
		at += i
		lo, hi := at-len(before), at+len(behind)
		if lo >= 0 && hi <= len(query) && strings.EqualFold(query[lo:hi], before+behind) {
			return true
		}
	}
}

var movesPostgres = regexp.MustCompile(`(?is)\bset\b.*\b(?:schema|role|authorization)\b|\b(?:reset|discard)\b.*\b(?:all|role|authorization)\b`)

func (d text) PlaceInCatalogue(schema, text string) string {
	for _, table := range sqltext.OwnTables {
		text = strings.ReplaceAll(text, "to_regclass('"+table+"')", "to_regclass("+
			d.Text(d.Quote(schema)+"."+table)+")")
	}
	return text
}

func (text) Facts() *sqltext.Facts { return facts }

var facts = &sqltext.Facts{
	Mark:        '$',
	Numbers:     fact.Yes,
	OwnNumbers:  fact.Yes,
	Application: fact.Yes,

	Schema: "schema", Path: "by the search_path",
	LockPrivilege: "UPDATE",
	Epoch:         epoch,
	BuiltIn:       "pg_catalog.",
	Qualified:     Qualified,

	CreateLedger:         sqltext.CreateLedger,
	CreateLedgerFunction: CreateLedgerFunction, FindLedgerFunction: FindLedgerFunction,
	Issuers:     issuers,
	FindOwnHome: findOwnHome,
	Vocabulary:  vocabulary(),
}

var findOwnHome = Qualified("SELECT COALESCE((SELECT n.nspname::text FROM pg_catalog.pg_class AS c JOIN " +
	"pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace" +
	" WHERE c.oid = pg_catalog.to_regclass('" + sqltext.LedgerTable + "')), '')")

func vocabulary() sqltext.Pieces {
	v := sqltext.Vocabulary(Text, epoch, alive)
	v["holds"] = sqltext.Func(holds)
	v["durable"] = sqltext.Raw(durable)
	v["turn"] = sqltext.Func(func(name string) string { return Text.Turn(name, false) })
	for piece, lock := range map[string]string{"try": "(", "share": "_shared("} {
		before, behind := turning("pg_try_advisory_xact_lock" + lock)
		v[piece] = sqltext.Func(func(name string) string { return before + name + behind })
	}
	v["seen"] = sqltext.Func(seen)
	return v
}

// alive: a session that can share the lock of a row's session knows that it has ended, unless the lock is its own. A
// session always shares its own locks; and behind a pooler the holder's may be the one that executes this.
func alive(row string) string {
	return "CASE WHEN " + row + ".session IS NULL OR NOT pg_catalog.pg_try_advisory_xact_lock_shared(" + row +
		".session) THEN true ELSE " + holds(row+".session") + " END"
}

func holds(number string) string {
	return `EXISTS (SELECT FROM pg_catalog.pg_locks AS k JOIN pg_catalog.pg_database AS d ON d.oid = k.database
		WHERE k.locktype = 'advisory' AND k.mode = 'ExclusiveLock' AND k.granted AND k.pid = pg_catalog.pg_backend_pid()
			AND d.datname = pg_catalog.current_database() AND k.objsubid = 1
			AND pg_catalog.int8or(pg_catalog.int8shl(k.classid::bigint, 32), k.objid::bigint) = ` + number + `)`
}
