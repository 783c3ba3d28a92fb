// Package postgres has all that is specific to PostgreSQL, a file a subject. Other databases have the same files.
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

// Text builds SQL for PostgreSQL. Functions are named with their schema, so that no function in the search path
// shadows them.
//
// In addition to the fragments of every dialect, PostgreSQL's statements have {durable} and {seen name}, see durable
// and checksSnapshot. {turn name} takes the name's advisory lock. {try name} takes it if it is free, and is true then.
// {share name} takes it shared if no session holds or awaits it exclusively, and is true then. {holds number} is true
// if this session holds the advisory lock with this number: a process holds it while its ephemeral leases live.
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

// Cast: PostgreSQL reads an untyped argument as text in most places.
func (text) Cast(t sqltext.Type) string {
	switch t {
	case sqltext.Text:
		return "::pg_catalog.text"
	case sqltext.Bigint:
		return "::bigint"
	}
	return ""
}

// Now isn't now(), the start of the transaction: the time for which its statements waited would shorten a lease.
func (text) Now() string { return "pg_catalog.clock_timestamp()" }

func (d text) After(ticks string) string {
	return "pg_catalog.timestamptz_pl_interval(" + d.Now() + ", " + Micros(ticks) + ")"
}

// Micros returns an interval of an integer expression.
func Micros(n string) string { return "pg_catalog.mul_d_interval(" + n + ", interval '1 microsecond')" }

func (text) Ticks(d time.Duration) int64 { return sqltext.Ticks(d, time.Microsecond) }

// Micros limits its result, because the latest timestamps exceed a bigint of microseconds. The limit is the highest
// double that fits a bigint, because before PostgreSQL 14 extract returns a double.
func (text) Micros(time string) string {
	return "CASE WHEN pg_catalog.isfinite(" + time + ") THEN LEAST(extract(epoch FROM " + time +
		") OPERATOR(pg_catalog.*) 1000000, " +
		"9223372036854774784) END::bigint"
}

// Throwing is of type bigint, and throws the error 22P02. No user-defined cast prevents the error: concat is never
// NULL, and int8in parses text without a cast.
func (text) Throwing() (before, between, behind string) {
	return "pg_catalog.int8in(pg_catalog.textout(pg_catalog.concat(", ", ", ")))"
}

func (text) Thrown(err error) (text string, ok bool) {
	if code, ok, own := dberr.PostgresError(err); ok {
		return own.Error(), code == dberr.InvalidText
	}
	return err.Error(), true
}

func (text) AdvisoryLock(name string, shared bool) string {
	lock := "pg_advisory_xact_lock("
	if shared {
		lock = "pg_advisory_xact_lock_shared("
	}
	before, behind := turning(lock)
	return before + name + behind
}

func turning(lock string) (before, behind string) {
	before, behind, _ = strings.Cut(LockNumber("|"), "|")
	return "pg_catalog." + lock + before, behind + ")"
}

// LockNumber returns an expression for the number of the advisory lock of a name, which is an expression.
func LockNumber(name string) string {
	return "pg_catalog.hashtextextended(pg_catalog.concat('sqlfence:', " + name + "), 0)"
}

// epoch is the number above which the tokens of the server's timeline begin. A timeline begins at a promotion or at the
// end of a restore, and has room for 10^10 tokens. After the first timeline, epoch increases with the clock, because
// two standbys that are promoted one after the other from the same past have the same timeline: docs/adr/0031.
//
// The timeline is the first eight hexadecimal digits of the current WAL file's name. The bound keeps the product
// within a bigint, at the highest token. After the first timeline, the tenths of seconds from 2026 to the statement's
// start are added, up to the timeline's last number; so the value is constant in a statement.
const epoch = "(SELECT pg_catalog.int8pl(pg_catalog.int8mul(LEAST(t.n, 90000), 10000000000), " +
	"pg_catalog.int8mul(LEAST(t.n, 1), LEAST(GREATEST(pg_catalog.int8mi((extract(epoch FROM " +
	"pg_catalog.statement_timestamp()) OPERATOR(pg_catalog.*) 10)::bigint, 17672256000), 0), 9999999999)))" +
	" FROM (SELECT pg_catalog.int8mi(pg_catalog.concat('x', pg_catalog.substr(pg_catalog.pg_walfile_name(" +
	"pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::bigint, 1) AS n OFFSET 0) AS t)"

// durable is an expression that makes the transaction's commit wait for the disk even if synchronous_commit is off;
// otherwise a server that crashes would issue the same tokens again. The expression is volatile, so PostgreSQL
// evaluates it although the value isn't used, and affects this transaction only.
const durable = "CASE WHEN pg_catalog.texteq(pg_catalog.current_setting('synchronous_commit'), 'off')" +
	" THEN pg_catalog.set_config('synchronous_commit', 'on', true) END"

// readsCommitted is a condition: each statement sees what was committed before it.
const readsCommitted = "pg_catalog.starts_with(pg_catalog.current_setting('transaction_isolation'), 'read ')"

// checksSnapshot returns a condition for a statement that may add the name, an expression of type text, to the ledger.
// A name begins above the lower bound, which [tokens.Store.Repair] increases. Above READ COMMITTED the snapshot may be
// older than a Repair that the statement has waited for. For an existing name this is a serialization failure, but a
// new name would begin too low. So the condition throws [sqltext.OldSnapshot], and the caller must add the name first.
func checksSnapshot(name string) string {
	return "CASE WHEN " + readsCommitted + " THEN true" +
		" WHEN EXISTS (SELECT FROM " + sqltext.LedgerTable + " WHERE name = " + name + ") THEN true" +
		" ELSE " + sqltext.Throw(Text, "'"+sqltext.OldSnapshot+"'", name) + " IS NOT NULL END"
}

// FindElsewhere leaves temporary tables out: each belongs to another session, or shadows all tables of its name.
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

// MayChangeSchema looks for changes of search_path, also by SET SCHEMA, RESET ALL, DISCARD ALL and set_config, and for
// changes of the role, because "$user" in the path means the schema of the role.
func (text) MayChangeSchema(query string, more bool) bool {
	return mentions(query, "search", "_path") || more && movesPostgres.MatchString(query) || setsDynamically(query) ||
		mentions(query, "set", "_config") && setsRole.MatchString(query)
}

// setsDynamically reports whether query may change a setting without showing the setting's name: set_config has no
// plain constant, an UPDATE of a view changes settings, or names are spelled in Unicode.
func setsDynamically(query string) bool {
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

// mentions reports whether query contains a name, in any case; behind is the name's part from its underscore on.
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

func (text) Capabilities() *sqltext.Capabilities { return capabilities }

var capabilities = &sqltext.Capabilities{
	Placeholder: '$',
	Numbers:     fact.Yes,
	OwnNumbers:  fact.Yes,
	KeyText:     [2]string{"", `::pg_catalog.text COLLATE pg_catalog."C"`},
	LocksFirst:  fact.No,
	Application: fact.Yes,

	Schema: "schema", Path: "by the search_path",
	LockPrivilege: "UPDATE",
	Epoch:         epoch,
	BuiltIn:       "pg_catalog.",
	Qualified:     Qualified,

	CreateLedger:         sqltext.CreateLedger,
	CreateLedgerFunction: CreateLedgerFunction, FindLedgerFunction: FindLedgerFunction,
	Issuers:          issuers,
	FindLedgerSchema: findLedgerSchema,
	Vocabulary:       vocabulary(),
}

var findLedgerSchema = Qualified("SELECT COALESCE((SELECT n.nspname::text FROM pg_catalog.pg_class AS c JOIN " +
	"pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace" +
	" WHERE c.oid = pg_catalog.to_regclass('" + sqltext.LedgerTable + "')), '')")

func vocabulary() sqltext.Fragments {
	v := sqltext.Vocabulary(Text, epoch, alive)
	v["holds"] = sqltext.Func(holds)
	v["durable"] = sqltext.Raw(durable)
	v["turn"] = sqltext.Func(func(name string) string { return Text.AdvisoryLock(name, false) })
	for piece, lock := range map[string]string{"try": "(", "share": "_shared("} {
		before, behind := turning("pg_try_advisory_xact_lock" + lock)
		v[piece] = sqltext.Func(func(name string) string { return before + name + behind })
	}
	v["seen"] = sqltext.Func(checksSnapshot)
	return v
}

// alive returns a condition that the session of a lease is alive. If another session can share the advisory lock of the
// lease's session, that session has ended, unless the executing session holds the lock itself: PostgreSQL grants a
// session its own locks again, and behind a pooler the executing session may be the holder's.
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
