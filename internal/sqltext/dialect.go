// Package sqltext has the SQL that several packages share: quoting, placeholders and the clock of each database, the
// ledger's table and its advisory locks, and the [Builder] of statements.
package sqltext

import (
	"cmp"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence/internal/fact"
)

// LedgerTable is the name of the ledger's table.
const LedgerTable = "fencing_tokens"

// LowerBoundName names the ledger row with the highest token that a deleted name may have had, in a database with
// timelines (see [Bounded]). Elsewhere, and for the number that [tokens.Store.Repair] stores, the row's name is empty.
const LowerBoundName = "sqlfence:floor"

// CreateLedger creates the ledger's table in most databases.
const CreateLedger = `CREATE TABLE IF NOT EXISTS ` + LedgerTable + ` (
	name  text   NOT NULL PRIMARY KEY,
	token bigint NOT NULL
)`

// A Dialect builds the SQL of one database for sqlfence's packages. The packages of internal/dialect implement it. A
// package with additional SQL embeds a Dialect.
//
// The methods return expressions without blanks around them, to be inserted into a statement unchanged.
type Dialect interface {
	// Quote returns a quoted name.
	Quote(name string) string

	// Text returns a text constant that means the same under all settings.
	Text(s string) string

	// Bool returns a truth value.
	Bool(b bool) string

	// Cast returns the cast after a placeholder of a type; empty for [Untyped].
	Cast(t Type) string

	// Convert casts an expression to a type.
	Convert(expression string, t Type) string

	// Now is the database's clock at the time of evaluation, which comes after any wait
	// for a lock; not the start of the transaction. In MySQL it is the start of the
	// statement. Times are of the type timestamptz in PostgreSQL, and integers in SQLite and
	// MySQL, milliseconds and microseconds since 1970.
	Now() string

	// After is the time that is ticks, an integer expression, after Now; negative ticks are in the past. See Ticks.
	After(ticks string) string

	// Ticks returns a duration in the database's unit of time, rounded away from zero, so that a lease is never shorter
	// than requested.
	Ticks(d time.Duration) int64

	// Micros converts a time, or a difference of times, to an integer of microseconds, a time since 1970:
	// [time.UnixMicro] and [time.Time.UnixMicro] convert it for every database. NULL and infinity become NULL; times
	// beyond the highest integer become the highest integer.
	Micros(time string) string

	// Throwing returns the SQL before, between and after the expressions of a [Throw].
	Throwing() (before, between, behind string)

	// Thrown returns the text of the database's error in err's chain, without the text of wrappers; ok is false if its
	// code isn't that of a [Throw]. An error without a code comes from an unknown driver: ok is then true, and the
	// caller must compare the text alone.
	Thrown(err error) (text string, ok bool)

	// AdvisoryLock returns an expression that takes the advisory lock of a name. A client that issues a token takes the
	// lock exclusively, and guarded writes share it, in the order of their requests. name is an expression of type
	// text. The result is empty if the database has a single writer, or grants the locks of the ledger's row in the
	// order of the requests.
	AdvisoryLock(name string, shared bool) string

	// FindElsewhere is a query for the other schemas with a table of this name, which is one of sqlfence's: other than
	// schema or, if schema is empty, than the schema in which the session finds the table. The query is empty if each
	// database file has its own tables.
	FindElsewhere(schema, table string) string

	// MayChangeSchema reports whether a statement may change the schema that [Capabilities.FindLedgerSchema] finds.
	// more is set if the statement does more than read and write rows.
	MayChangeSchema(query string, more bool) bool

	// PlaceInCatalogue makes the queries of the catalogue in text find sqlfence's tables in schema.
	PlaceInCatalogue(schema, text string) string

	// Capabilities returns the database's capabilities and constants.
	Capabilities() *Capabilities
}

// Capabilities are the capabilities and constants of a [Dialect].
type Capabilities struct {
	Placeholder byte      // the first byte of placeholders
	Numbers     fact.Fact // a placeholder can have a number
	OwnNumbers  fact.Fact // placeholders of sqlfence's own statements have a number
	Application fact.Fact // usually all schemas that a session sees belong to one application

	// Schema is the word for a schema in messages, and Path describes where the session finds unqualified names.
	Schema, Path string

	// Unlimited is a clause to append to a query without a LIMIT, because a setting of the session could cut its rows
	// off; empty if the database has no such setting.
	Unlimited string

	// KeyText is the SQL before and after a column that makes the column a text that is compared byte by byte, whatever
	// the column's type and collation.
	KeyText [2]string

	// LocksFirst: queries before the statement lock the rows of other tables and compare them with the tokens, instead
	// of the guard.
	LocksFirst fact.Fact

	// LockPrivilege is the privilege on the ledger that a guard needs to lock its row, in addition to SELECT; empty if
	// it needs no other privilege.
	LockPrivilege string

	// Epoch is an expression for the number above which the tokens of the server's timeline begin; empty if the
	// database has no timelines. See [Bounded].
	Epoch string

	// BuiltIn is the schema prefix of built-in functions and operators, so that an application's operator can't
	// replace them; empty if applications can't define operators. Qualified adds the prefix to a statement's
	// comparisons; nil if BuiltIn is empty.
	BuiltIn   string
	Qualified func(statement string) string

	// CreateLedger creates the ledger's table if it is missing, and LedgerState a table that the ledger's triggers
	// need.
	CreateLedger, LedgerState string

	// LedgerTriggers keep the ledger's tokens from decreasing, and its names from being deleted.
	LedgerTriggers []Trigger

	// Issuers records which role issued a token; optional in a ledger.
	Issuers Issuers

	// CreateLedgerFunction creates triggers, instead of LedgerTriggers, and a function that queries the ledger.
	// FindLedgerFunction is a query for the function's schema, with a row if a guard can call the function. Both are
	// empty if guards query the ledger without a function.
	CreateLedgerFunction, FindLedgerFunction string

	// FindLedgerSchema is a query for the schema in which the session finds the ledger, or the empty text if it finds
	// none. The query is empty if sessions can't change schemas.
	FindLedgerSchema string

	// Vocabulary has the fragments available to every statement; see [Vocabulary].
	Vocabulary Fragments
}

// Type is the type of a placeholder.
type Type uint8

// The types.
const (
	Untyped Type = iota // the database infers the type
	Text                // text
	Bigint              // an integer of 8 bytes
)

// LowerBound is an expression for the number above which the first token of a name must be: see [Bounded].
func LowerBound(d Dialect) string { return lowerBound(d, d.Capabilities().Epoch) }

func lowerBound(d Dialect, epoch string) string {
	if epoch == "" {
		return start(d)
	}
	return "GREATEST(" + start(d) + " OPERATOR(" + d.Capabilities().BuiltIn + "+) " + epoch +
		", " + served(d, epoch) + ")"
}

// start is [LowerBound] on the first timeline: 0 unless [tokens.Store.Repair] has stored a higher number, under the
// empty name, which no token has.
func start(d Dialect) string { return stored(d, "") }

// served is the highest token that a name without a row may have had. Without timelines it equals start. With timelines
// it isn't relative to the timeline's first token, as start is, so that it stays valid whatever happens to the clock,
// the timeline and the privilege to read the timeline.
func served(d Dialect, epoch string) string {
	if epoch == "" {
		return start(d)
	}
	return stored(d, LowerBoundName)
}

func stored(d Dialect, name string) string {
	return "COALESCE((SELECT token FROM " + LedgerTable + " WHERE name = " + d.Text(name) + "), 0)"
}

// Vocabulary returns the fragments that all dialects share, in d's SQL. epoch is that of d's [Capabilities]. alive is a
// condition that the session of a lease's row hasn't ended.
func Vocabulary(d Dialect, epoch string, alive Func) Fragments {
	return Fragments{
		"ledger": Raw(LedgerTable),
		"now":    Raw(d.Now()),
		"empty":  Raw(d.Text("")),
		"start":  Raw(start(d)),
		"epoch":  Raw(cmp.Or(epoch, "0")),
		"floor":  Raw(lowerBound(d, epoch)),
		"served": Raw(served(d, epoch)),
		"after":  Func(d.After),
		"micros": Func(d.Micros),
		"text":   Func(func(x string) string { return d.Convert(x, Text) }),
		"bigint": Func(func(x string) string { return d.Convert(x, Bigint) }),
		"alive":  alive,
		"live": Func(func(row string) string {
			return row + ".lock_id IS NOT NULL AND " + row + ".expires_at > " + d.Now() + " AND " + alive(row)
		}),
	}
}

// Whole changes a query so that no setting of the session limits its rows, and no operator of the application replaces
// a built-in operator.
func Whole(d Dialect, query string) string {
	if qualified := d.Capabilities().Qualified; qualified != nil {
		query = qualified(query)
	}
	all, limited := d.Capabilities().Unlimited, strings.LastIndex(query, " LIMIT ") > strings.LastIndex(query, ")")
	if all == "" || limited || !strings.HasPrefix(query, "SELECT ") {
		return query
	}
	end := strings.LastIndex(query, " FOR UPDATE")
	if end < 0 {
		end = len(query)
	}
	return query[:end] + all + query[end:]
}
