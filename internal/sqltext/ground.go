package sqltext

import (
	"slices"
	"strings"
)

// The ground that guards and seals stand on: what a database has of sqlfence's own. Package
// rewrite refuses to change it, verify.Check looks at it, and Setup and Seal make it. What is added
// to a database has to be named here, or has to have a name that [OwnsName] owns.

// OwnTables are the tables that sqlfence's packages keep, in any schema.
var OwnTables = []string{LedgerTable, LeaseTable, LocksTable, ChangesTable, SQLiteLedgerState}

// The tables beside the ledger.
const (
	LeaseTable = "fencing_leases"
	LocksTable = "rowlocks"

	// ChangesTable has the counts of package changes.
	ChangesTable = "fencing_changes"

	// SQLiteLedgerState is a table of SQLite's in which the ledger's triggers remember a token that
	// an INSERT finds above its own: REPLACE deletes a row without firing a trigger for that.
	SQLiteLedgerState = "sqlfence_ledger"
)

// OwnPrefix begins the names of all functions, triggers and constraints that sqlfence makes. Such a
// name may have a ~ before it, which sorts it last.
const OwnPrefix = "sqlfence"

// OwnsName reports whether a function, trigger or constraint of this name is sqlfence's: it
// begins with the prefix and _, - or :, in letters of either case.
func OwnsName(name string) bool {
	name = strings.TrimPrefix(name, "~")
	return len(name) > len(OwnPrefix) && strings.EqualFold(name[:len(OwnPrefix)], OwnPrefix) &&
		strings.IndexByte("_-:", name[len(OwnPrefix)]) >= 0
}

// ownSettings are the settings of a session that guards and seals rely on, and that prove nothing
// about a client. The first one has PostgreSQL fire no triggers but those that are ENABLE ALWAYS.
// In the others the triggers remember the tokens that they have compared and locked. One that ends
// with _ begins the names of several.
var ownSettings = []string{TriggerSetting, "sqlfence.seen", "sqlfence.turns", "sqlfence.move_"}

// TriggerSetting is the setting of PostgreSQL that turns triggers off.
const TriggerSetting = "session_replication_role"

// OwnsSetting reports whether a setting of PostgreSQL is one that only sqlfence changes, or one
// that turns triggers off.
func OwnsSetting(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(ownSettings, func(own string) bool {
		return name == own || strings.HasSuffix(own, "_") && strings.HasPrefix(name, own)
	})
}

// UnseenSetting is why a statement is refused that may change another setting than an application's own.
const UnseenSetting = "it may change a setting that its text doesn't show, such as one that keeps triggers from " +
	"firing; write the name of the setting as a constant, or pass one with a dot as an argument; or run it under " +
	"Bypass"

// IsApplicationSetting reports whether a setting of PostgreSQL is an application's own, so that no guard depends on it:
// its name has a dot within it, and isn't sqlfence's.
func IsApplicationSetting(name string) bool {
	plain := func(r rune) bool {
		return r == '.' || r == '_' || r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9'
	}
	return strings.Contains(name, ".") && !strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) &&
		!strings.HasPrefix(strings.ToLower(name), OwnPrefix+".")
}

// SeenVariable is the variable in which the triggers of MySQL's seals remember what they have
// compared.
const SeenVariable = "sqlfence_seen"

// What a PostgreSQL database may have besides the ledger's table: see package internal/dialect/postgres.
const (
	// LedgerFunction is the name of the function, in the schema of the ledger. The number
	// changes with what the arguments, or the locks that are taken, mean.
	LedgerFunction = "sqlfence_newest_v2"

	// LedgerTrigger is the name of the trigger for rows that are changed, and of its function.
	LedgerTrigger = "sqlfence_turn_v1"

	// LedgerFloorTrigger is the name of the trigger for names that get their first token, and of its function.
	LedgerFloorTrigger = "sqlfence_floor_v1"

	// LedgerTruncateTrigger is the name of the trigger for TRUNCATE, which calls the same function.
	LedgerTruncateTrigger = "sqlfence_kept_v1"

	// LedgerKept is the code of its refusal to lower or to lose a token.
	LedgerKept = "FTL01"

	// LedgerKeptState is the SQLSTATE of the refusals of MySQL's triggers.
	LedgerKeptState = "45L01"
)

// Padding is what follows the text of a raise in MySQL's message, or some of it.
const Padding = " ......"
