package sqltext

import (
	"strconv"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// Postgres is PostgreSQL. Functions are named with their schema, so that nothing of the
// same name in the search path stands before them.
//
// Beside the pieces that every dialect has, its statements know {durable}, {turn name},
// {try name}, which is true if the turn is free and taken, {seen name} and {raise part, part}.
var Postgres Dialect = postgres{}

type postgres struct{}

func (postgres) Convert(x string, t Type) string { return convert(x, t) }

func (postgres) CreateLedger() string { return createLedger }

func (d postgres) FindSeal(schema, table string) string {
	name := d.Quote(table)
	if schema != "" {
		name = d.Quote(schema) + "." + name
	}
	return "SELECT 'sealed' FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid = pg_catalog.to_regclass(" + d.Text(name) + ")" +
		" AND g.tgname = '" + SealTrigger + "' AND g.tgenabled IN ('O', 'A')"
}

func (postgres) Quote(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// Text doesn't depend on standard_conforming_strings.
func (postgres) Text(s string) string {
	quoted := quoteText(s)
	if strings.IndexByte(s, '\\') >= 0 {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

func (postgres) Bool(b bool) string { return strconv.FormatBool(b) }

func (d postgres) Placeholder(n int, t Type) string { return "$" + strconv.Itoa(n) + d.Cast(t) }

// Cast: PostgreSQL takes an untyped argument for text in most places.
func (postgres) Cast(t Type) string {
	switch t {
	case Text:
		return "::text"
	case Bigint:
		return "::bigint"
	}
	return ""
}

// Now: now() would be the start of the transaction, and a lease shorter by the time that
// its statement waited.
func (postgres) Now() string { return "pg_catalog.clock_timestamp()" }

func (d postgres) After(ticks string) string {
	return "(" + d.Now() + " + " + ticks + " * interval '1 microsecond')"
}

func (postgres) Ticks(d time.Duration) int64 { return ticks(d, time.Microsecond) }

// Micros: timestamps go on for some years after the last that is a bigint of microseconds.
func (postgres) Micros(time string) string {
	return "CASE WHEN pg_catalog.isfinite(" + time + ") THEN LEAST(extract(epoch FROM " + time + ") * 1000000, 9223372036854775807) END::bigint"
}

// Raise is of type bigint, and raises 22P02. No cast of the database's own softens it:
// concat is never NULL, and int8in reads its text by itself.
func (d postgres) Raise(parts ...string) string { return raise(d, parts) }

func (postgres) Raising() (before, between, behind string) {
	return "pg_catalog.int8in(pg_catalog.textout(pg_catalog.concat(", ", ", ")))"
}

func (d postgres) Turn(name string, shared bool) string {
	before, behind := d.Turning(shared)
	return before + name + behind
}

func (postgres) Turning(shared bool) (before, behind string) {
	if shared {
		return turning("pg_advisory_xact_lock_shared(")
	}
	return turning("pg_advisory_xact_lock(")
}

func turning(lock string) (before, behind string) {
	return "pg_catalog." + lock + "pg_catalog.hashtextextended(pg_catalog.concat('sqlfence:', ", "), 0))"
}

func (postgres) FindPeers() string { return "" }

// FindSplitCharset: package rewrite refuses a text that such an encoding would read otherwise, and
// the drivers write UTF-8 or nothing.
func (postgres) FindSplitCharset() string { return "" }

func (postgres) LockPrivilege() string { return "UPDATE" }

func (postgres) FindSimultaneous() string { return "" }

// Floor: each timeline of the server, which a promotion begins, or the end of a restore,
// has 10^10 tokens.
func (d postgres) Floor() string { return "(" + start(d) + " + " + epoch + ")" }

// epoch reads the timeline from the first eight hexadecimal digits of the name of the
// WAL file that is being written. The bound keeps the product within a bigint; there it
// has reached the highest token.
const epoch = "LEAST(('x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::bigint - 1, 90000)" +
	" * 10000000000"

// Durable is an expression that has the statement's transaction wait until its
// commit is on disk, also where synchronous_commit is off: a server that crashed
// would else give the same tokens again. It is volatile, so that it is evaluated
// though nobody uses its value, and holds for this transaction only.
const Durable = "CASE WHEN pg_catalog.current_setting('synchronous_commit') = 'off'" +
	" THEN pg_catalog.set_config('synchronous_commit', 'on', true) END"

// Seen is a condition for a statement that may add the name to the ledger, an
// expression of type text, above the floor. Above READ COMMITTED the statement's snapshot
// may be older than a Repair that it has waited for; a name that Repair has raised
// is a serialization failure then, but one that is new would begin too low. So it
// raises there, [IsUnseen], and the name has to be added first.
func Seen(name string) string {
	return "CASE WHEN pg_catalog.current_setting('transaction_isolation') IN ('read committed', 'read uncommitted') THEN true" +
		" WHEN EXISTS (SELECT FROM " + LedgerTable + " WHERE name = " + name + ") THEN true" +
		" ELSE " + Postgres.Raise("'"+unseen+"'", name) + " IS NOT NULL END"
}

const unseen = "sqlfence:unseen:"

// IsUnseen reports whether err is what [Seen] raises.
func IsUnseen(err error) bool {
	return dberr.SQLState(err) == dberr.InvalidText && strings.Contains(err.Error(), unseen)
}

func (postgres) mark() byte     { return '$' }
func (postgres) numbered() bool { return true }
func (postgres) counts() bool   { return true }

func (postgres) vocabulary() Pieces { return postgresVocabulary }

var postgresVocabulary = func() Pieces {
	v := vocabulary(postgres{})
	v["durable"] = Raw(Durable)
	v["turn"] = Func(func(name string) string { return postgres{}.Turn(name, false) })
	v["try"] = Func(func(name string) string {
		before, behind := turning("pg_try_advisory_xact_lock(")
		return before + name + behind
	})
	v["raise"] = Func(func(parts string) string { return postgres{}.Raise(parts) })
	v["seen"] = Func(Seen)
	return v
}()
