package sqlfence

import (
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/nfc"
)

// A Rule is a way to guard a registered table. See [WithTable].
type Rule func(*registration)

// RowFence stores the token in the row: column is a 64-bit integer column (bigint) that holds the
// highest token that has written the row; NULL and 0 mean that no token has. Only sqlfence writes
// it. May be combined with [Ledger]; both are then enforced.
//
// A row can't know whether its token was ever issued: any higher number passes, and refuses all
// lower ones from then on, also those of honest holders. Nor does a deleted row keep its token: an
// INSERT or upsert with an older one brings it back. If tokens may come from outside, for example
// with a request, add [Ledger], which refuses both.
//
// docs/rules.md has what differs by database, such as SQLite's REPLACE, which is guarded in its plain form.
func RowFence(column string) Rule {
	return func(t *registration) { t.Once(&t.Rules.FenceColumn, "RowFence", column) }
}

// Ledger lets a write pass only with the newest token issued or adopted for its
// name, which the table fencing_tokens holds (see package tokens): a lower one is
// [ErrStale], a higher one [ErrNotIssued]. A token of another service has to be
// adopted before it is used. The guarded table needs no column. Ledger is the default
// for a table without rules.
//
// On SQLite:
//
//   - REPLACE, INSERT OR REPLACE and UPDATE OR REPLACE are guarded if the table has no other
//     rule but [Resource], [Optional] or [UnfencedInserts]. Else the last is refused, and for the
//     others see [RowFence].
//   - The ledger has to be in the database file of the guarded table.
//   - INSERT ... SELECT * between tables with generated columns fails; name the
//     columns instead.
//   - DEFAULT VALUES fails for a table WITHOUT ROWID, and ignores the default of a
//     column called _rowid_.
//
// Where several servers write to one database, as in a Galera cluster, a write with Ledger is
// refused with an [UnguardableError]: its lock is one server's. See docs/galera.md.
//
// PostgreSQL refuses guarded writes (0A000) to a table with a DO ALSO rule or a
// conditional DO INSTEAD rule for them.
func Ledger() Rule {
	return func(t *registration) { t.Rules.Ledger = true }
}

// Resource sets the name of the tokens that guard this table; by default it is
// the table's name as it was registered. It is brought into Unicode's normalization
// form C, like the names of the tokens, and has their limits (see [Token]).
func Resource(name string) Rule {
	return func(t *registration) {
		if fault := core.NameFault(nfc.String(name)); fault != "" {
			t.Fail(errors.New("Resource: " + fault))
			return
		}
		t.Once(&t.Resource, "Resource", nfc.String(name))
	}
}

// SingleUse refuses a token that the row holds already: one token, one write per
// row. Needs [RowFence]. A driver's retry of a write that had been applied is then
// refused, too.
func SingleUse() Rule {
	return func(t *registration) { t.Rules.SingleUse = true }
}

// Optional lets writes without a token pass unguarded, each with an [Unfenced] event; those
// with one are guarded. Use it while an application is being converted.
func Optional() Rule {
	return func(t *registration) { t.Optional = true }
}

// UnfencedInserts lets a statement that can only add rows run without a token: no context can carry
// one for a row that isn't there yet. It is for tables that get their keys from the database, by a
// sequence, AUTOINCREMENT or a DEFAULT, or by INSERT ... SELECT; with [Key] those statements are
// refused otherwise.
//
// REPLACE, and an upsert with DO UPDATE, still need a token, as they may change a row. A token that
// the context carries is used all the same.
//
// What it gives up: a process that has lost its token can still add rows. And a row that is added
// without its token has an empty mark, so that the first token to write it passes, however old; the
// fence column has to be nullable, or to have 0 as its default. Where rows belong to something that
// exists before them, such as an order to its customer, a [Key] on that column fences new rows, too.
// docs/rules.md has the details.
func UnfencedInserts() Rule {
	return func(t *registration) { t.Rules.UnfencedInserts = true }
}

// Exempt takes one table out of the patterns of [WithTable]: its writes aren't guarded. It goes with no other rule.
// Where the table is registered with a schema, a statement has to name that, too.
func Exempt() Rule {
	return func(t *registration) { t.Rules.Exempt = true }
}

// InMode sets the mode of the table, whatever [WithMode] says: an application can be
// converted table by table, each observed first and enforced then. All of the table's rules are in
// this mode, also [Serial] and [EditLock]. Two different modes are refused.
//
// If a statement concerns tables of both modes, as one with WITH may, or one that can't be
// read, what is enforced holds as if the observed tables weren't registered:
//
//   - A statement that writes to both is sent with all of its guards. If it fails, it is sent
//     once more, in a PostgreSQL transaction behind a savepoint, with those of the enforced tables
//     alone. If these refuse it, it is refused; else the event says why it would have been.
//   - A statement that the enforced tables alone would have refused is refused, and one that
//     is refused only for the observed tables is sent with the guards of the enforced ones.
func InMode(m Mode) Rule {
	return func(t *registration) {
		switch {
		case m > Observe:
			t.Fail(fmt.Errorf("unknown mode %d", m))
		case t.ModeSet && t.Mode != core.Mode(m):
			t.Fail(errors.New("InMode twice, with Enforce and Observe"))
		}
		t.Mode, t.ModeSet = core.Mode(m), true
	}
}
