// Package sqltext says once what several packages say in SQL: how each database quotes
// and numbers, its clock, the ledger's table and its turn, and the [Builder] that
// statements are written with.
package sqltext

import (
	"cmp"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence/internal/fact"
)

// LedgerTable is the name of the ledger's table.
const LedgerTable = "fencing_tokens"

// FloorName is the name of a row of the ledger's own, where tokens have an epoch; see [Floor]. Elsewhere, and for
// where the first timeline starts, the empty name is that of the ledger's own row.
const FloorName = "sqlfence:floor"

// CreateLedger creates it, as most databases have it.
const CreateLedger = `CREATE TABLE IF NOT EXISTS ` + LedgerTable + ` (
	name  text   NOT NULL PRIMARY KEY,
	token bigint NOT NULL
)`

// A Dialect is how one database writes what sqlfence's packages have to say in SQL.
// The packages of internal/dialect implement it. A package that adds texts of its own embeds it.
//
// What the methods return are expressions, without a blank around them, that stand in a
// statement as they are.
type Dialect interface {
	// Quote writes a name so that the database reads just that.
	Quote(name string) string

	// Text writes a text constant, which reads alike under all settings.
	Text(s string) string

	// Bool writes a truth value.
	Bool(b bool) string

	// Cast is what stands behind a placeholder for its type; empty for [Untyped].
	Cast(t Type) string

	// Convert makes a value of the type of an expression.
	Convert(expression string, t Type) string

	// Now is the database's clock at the time of evaluation, which comes after any wait
	// for a lock; not the start of the transaction. In MySQL it is the start of the
	// statement. Times are of the type timestamptz in PostgreSQL, and integers in SQLite and
	// MySQL, milliseconds and microseconds since 1970.
	Now() string

	// After is the time as many ticks from now as an integer expression says, in the
	// past if it is negative. See Ticks.
	After(ticks string) string

	// Ticks returns a duration in the database's unit of time. What is finer makes it
	// longer, in both directions: a lease is never shorter than asked for.
	Ticks(d time.Duration) int64

	// Micros turns a time, or a difference of times, into an integer of microseconds, of
	// a time since 1970: [time.UnixMicro] and [time.Time.UnixMicro] read and write it
	// whatever the database. NULL and infinity become NULL, and what is later than all
	// integers the last of them.
	Micros(time string) string

	// Raising returns what stands before, between and behind the parts of a [Raise].
	Raising() (before, between, behind string)

	// Raised returns the text of the database's error in err's chain, without what a wrapper adds
	// to it; ok is false if its code isn't that of a [Raise]. What has no code is an error of a driver
	// that isn't known: ok is true then, and the text alone has to tell.
	Raised(err error) (text string, ok bool)

	// Turn is the lock at the ledger that orders those who raise the token of a name and,
	// shared, those who write under the ledger's guard, in the order of their requests.
	// name is an expression of type text. Empty where there is one writer only, who has
	// the turn by that, and where the locks of the ledger's row are given in that order.
	Turn(name string, shared bool) string

	// FindElsewhere is a query for the other schemas that have one of sqlfence's own tables than the one in which it is
	// looked for, or, if that is empty, where the session finds it. Empty where a table belongs to the file of
	// those that it guards.
	FindElsewhere(schema, table string) string

	// MayMove reports whether a statement may change the schema that [Facts.FindOwnHome] finds; the caller says
	// whether it does more than read and write rows.
	MayMove(query string, more bool) bool

	// PlaceInCatalogue has what asks the catalogue for one of sqlfence's own tables ask for that of a schema.
	PlaceInCatalogue(schema, text string) string

	// Facts are what depends on no argument.
	Facts() *Facts
}

// Facts are what is so of a [Dialect], whatever it is to write.
type Facts struct {
	Mark        byte      // the first byte of placeholders
	Numbers     fact.Fact // a placeholder can have a number
	OwnNumbers  fact.Fact // and has one in a statement of a package's own
	Application fact.Fact // the schemas that a session sees are, as a rule, one application's

	// Schema and Path are what messages call a schema, and where the session finds names without one.
	Schema, Path string

	// Unlimited ends a query without a LIMIT, if a setting of the session would cut its rows; empty for none.
	Unlimited string

	// LockPrivilege is the privilege on the ledger that a guard's lock of its row takes, beside
	// SELECT; empty for none.
	LockPrivilege string

	// Epoch is the number that all tokens of the server's timeline are above; empty where there is one only.
	// See [Floored].
	Epoch string

	// BuiltIn stands before a function or an operator of the database's, so that none of the application's takes its
	// place; empty where no application has operators. Qualified names the comparisons of a statement so; nil as well.
	BuiltIn   string
	Qualified func(statement string) string

	// CreateLedger creates the ledger's table if there is none, and LedgerState a table that its triggers need.
	CreateLedger, LedgerState string

	// LedgerTriggers keep the ledger's tokens from falling, and its names from being lost.
	LedgerTriggers []Trigger

	// Issuers is what records who has taken a token; a ledger has it where that is wanted.
	Issuers Issuers

	// CreateLedgerFunction creates, in place of them, triggers and a function that asks the ledger, and
	// FindLedgerFunction returns the function's schema if a guard can call it; empty for none.
	CreateLedgerFunction, FindLedgerFunction string

	// FindOwnHome is a query for the schema in which the session finds the ledger, the empty text
	// where it finds none; empty where no session can be moved.
	FindOwnHome string

	// Vocabulary has the pieces that every statement knows; see [Vocabulary].
	Vocabulary Pieces
}

// Type is the type of a placeholder.
type Type uint8

// The types.
const (
	Untyped Type = iota // as the database finds out by itself
	Text                // text
	Bigint              // an integer of 8 bytes
)

// Floor is the number that all tokens are above: see [Floored].
func Floor(d Dialect) string { return floor(d, d.Facts().Epoch) }

func floor(d Dialect, epoch string) string {
	if epoch == "" {
		return start(d)
	}
	return "GREATEST(" + start(d) + " OPERATOR(" + d.Facts().BuiltIn + "+) " + epoch + ", " + served(d, epoch) + ")"
}

// start is what [Floor] is on the first timeline: 0 unless tokens' Repair has
// stored more, under the name that no token can have.
func start(d Dialect) string { return stored(d, "") }

// served is the highest number that names without a row may have had. It is that of start, but where timelines
// have numbers of their own: start is counted from the timeline's first there, and this one from 0, so that it holds
// whatever becomes of the clock, of the timeline and of the right to read it.
func served(d Dialect, epoch string) string {
	if epoch == "" {
		return start(d)
	}
	return stored(d, FloorName)
}

func stored(d Dialect, name string) string {
	return "COALESCE((SELECT token FROM " + LedgerTable + " WHERE name = " + d.Text(name) + "), 0)"
}

// Vocabulary returns the pieces that are the same for all dialects but for d's spelling, for the epoch of its [Facts],
// and for alive: a condition that the session of a lease's row hasn't ended.
func Vocabulary(d Dialect, epoch string, alive Func) Pieces {
	return Pieces{
		"ledger": Raw(LedgerTable),
		"now":    Raw(d.Now()),
		"empty":  Raw(d.Text("")),
		"start":  Raw(start(d)),
		"epoch":  Raw(cmp.Or(epoch, "0")),
		"floor":  Raw(floor(d, epoch)),
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

// Whole returns a query so that a setting of the session doesn't cut its rows, and no operator of the application's
// takes the place of the database's.
func Whole(d Dialect, query string) string {
	if qualified := d.Facts().Qualified; qualified != nil {
		query = qualified(query)
	}
	all, limited := d.Facts().Unlimited, strings.LastIndex(query, " LIMIT ") > strings.LastIndex(query, ")")
	if all == "" || limited || !strings.HasPrefix(query, "SELECT ") {
		return query
	}
	end := strings.LastIndex(query, " FOR UPDATE")
	if end < 0 {
		end = len(query)
	}
	return query[:end] + all + query[end:]
}
