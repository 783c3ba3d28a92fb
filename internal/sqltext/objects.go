package sqltext

import (
	"slices"
	"strings"
)

// The database objects that guards and seals depend on. Setup and Seal create the objects, package rewrite refuses
// statements that change the objects, and verify.Check compares the objects. A new database object must be listed
// here, or must have a name that [OwnsName] accepts.

// OwnTables are the tables that sqlfence's packages keep, in any schema.
var OwnTables = []string{LedgerTable, LeaseTable, LocksTable, ChangesTable, SQLiteLedgerState}

// The tables in addition to the ledger.
const (
	LeaseTable = "fencing_leases"
	LocksTable = "rowlocks"

	// ChangesTable has the counts of package changes.
	ChangesTable = "fencing_changes"

	// SQLiteLedgerState is a table in SQLite. In it the ledger's triggers remember a stored token that is higher than
	// an INSERT's, because REPLACE deletes a row without firing a DELETE trigger.
	SQLiteLedgerState = "sqlfence_ledger"
)

// OwnPrefix begins the names of all functions, triggers and constraints that sqlfence makes. A name may begin with ~,
// so that PostgreSQL fires this trigger last.
const OwnPrefix = "sqlfence"

// OwnsName reports whether a function, trigger or constraint of this name is sqlfence's: the name begins with the
// prefix and _, - or :, in any case.
func OwnsName(name string) bool {
	name = strings.TrimPrefix(name, "~")
	return len(name) > len(OwnPrefix) && strings.EqualFold(name[:len(OwnPrefix)], OwnPrefix) &&
		strings.IndexByte("_-:", name[len(OwnPrefix)]) >= 0
}

// ownSettings are the session settings that guards and seals depend on, except those in which a client presents its
// tokens. TriggerSetting can make PostgreSQL fire only triggers that are ENABLE ALWAYS. In the other settings the
// triggers remember the tokens that they have compared and locked. A name that ends with _ is a prefix.
var ownSettings = []string{TriggerSetting, "sqlfence.seen", "sqlfence.turns", "sqlfence.move_"}

// TriggerSetting is the setting of PostgreSQL that turns triggers off.
const TriggerSetting = "session_replication_role"

// OwnsSetting reports whether only sqlfence may change a PostgreSQL setting, or whether the setting turns triggers
// off.
func OwnsSetting(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(ownSettings, func(own string) bool {
		return name == own || strings.HasSuffix(own, "_") && strings.HasPrefix(name, own)
	})
}

// DynamicSetting is the reason for refusing a statement that may change a setting that guards depend on.
const DynamicSetting = "it may change a setting that its text doesn't show, such as one that keeps triggers from " +
	"firing; write the name of the setting as a constant, or pass one with a dot as an argument; or run it under " +
	"Bypass"

// IsApplicationSetting reports whether a PostgreSQL setting belongs to the application, so that no guard depends on it:
// its name has a dot, consists of letters, digits, _ and dots, and doesn't begin with "sqlfence.".
func IsApplicationSetting(name string) bool {
	plain := func(r rune) bool {
		return r == '.' || r == '_' || r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9'
	}
	return strings.Contains(name, ".") && !strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) &&
		!strings.HasPrefix(strings.ToLower(name), OwnPrefix+".")
}

// ComparedVariable is the variable in which the triggers of MySQL's seals remember the compared token.
const ComparedVariable = "sqlfence_seen"

// Objects that a PostgreSQL database may have in addition to the ledger's table: see package
// internal/dialect/postgres.
const (
	// LedgerFunction is the name of the function that compares a token, in the ledger's schema. A version with another
	// meaning of the arguments or of the locks gets another number in its name.
	LedgerFunction = "sqlfence_newest_v2"

	// LedgerTurns is the name of the function that reports whether the ledger has the trigger LedgerTrigger.
	LedgerTurns = "sqlfence_turns_v1"

	// LedgerTrigger is the name of the trigger for changed rows, and of its function.
	LedgerTrigger = "sqlfence_turn_v1"

	// LedgerBoundTrigger is the name of the trigger for names that get their first token, and of its function.
	LedgerBoundTrigger = "sqlfence_floor_v1"

	// LedgerTruncateTrigger is the name of the trigger for TRUNCATE, which calls the function of LedgerTrigger.
	LedgerTruncateTrigger = "sqlfence_kept_v1"

	// LedgerRefusal is the SQLSTATE of the triggers' refusal to decrease or delete a token.
	LedgerRefusal = "FTL01"

	// LedgerRefusalState is the SQLSTATE of the refusals of MySQL's triggers.
	LedgerRefusalState = "45L01"
)

// Padding follows the text of a raise in MySQL's message, in full or cut.
const Padding = " ......"
