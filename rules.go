package sqlfence

import (
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/nfc"
)

// A Rule is a way to guard a registered table. See [WithTable]. docs/rules.md compares the rules, and
// docs/data/rules.md describes how they differ by database.
type Rule func(*registration)

// RowFence stores the highest token that has written a row in column, a 64-bit integer column (bigint) that
// only sqlfence writes. A write with a lower token fails with [ErrStale]. NULL and 0 mean that no token has
// written the row.
//
// RowFence doesn't know which tokens were issued: a made-up high token passes and makes all lower tokens stale.
// A deleted row has no token, so that an INSERT with an older token brings the row back. Add [Ledger] to refuse
// both.
func RowFence(column string) Rule {
	return func(t *registration) { t.Once(&t.Rules.FenceColumn, "RowFence", column) }
}

// Ledger lets a write pass only with the newest token that was issued or adopted for its name (package tokens),
// which the table fencing_tokens holds. A lower token is [ErrStale], a higher one [ErrNotIssued]. The guarded
// table needs no column. Ledger is the default for a table without rules, and can be combined with [RowFence].
//
// On SQLite the ledger must be in the guarded table's file. If several servers write to one database, as in a
// Galera cluster, writes fail with an [UnguardableError].
func Ledger() Rule {
	return func(t *registration) { t.Rules.Ledger = true }
}

// Resource sets the name of the tokens that guard the table. The default is the registered name of the table.
// [Token] describes which names are valid.
func Resource(name string) Rule {
	return func(t *registration) {
		if fault := core.NameFault(nfc.String(name)); fault != "" {
			t.Fail(errors.New("Resource: " + fault))
			return
		}
		t.Once(&t.Resource, "Resource", nfc.String(name))
	}
}

// SingleUse refuses a token that the row already holds, so that each token writes a row only once. It needs
// [RowFence]. A driver's retry of an applied write is then refused.
func SingleUse() Rule {
	return func(t *registration) { t.Rules.SingleUse = true }
}

// Optional sends writes without a token unguarded, each with an [Unfenced] event. Writes with a token are
// guarded. Use Optional while you convert an application.
func Optional() Rule {
	return func(t *registration) { t.Optional = true }
}

// UnfencedInserts lets a statement that only adds rows run without a token. It is for tables with keys that the
// database makes, because no context can carry the token of such a row. If the context carries a token, the
// statement uses the token.
//
// A process that has lost its token can still add rows. A row that is added without a token has an empty fence
// column, which must be nullable or have the default 0, and the first token to write the row passes, however
// old.
func UnfencedInserts() Rule {
	return func(t *registration) { t.Rules.UnfencedInserts = true }
}

// Exempt excludes a table from the patterns of [WithTable]: its writes aren't guarded. It can't be combined
// with other rules. If the table is registered with its schema, statements must name the schema.
func Exempt() Rule {
	return func(t *registration) { t.Rules.Exempt = true }
}

// InMode sets the mode of the table and of all its rules, in place of [WithMode].
//
// If a statement concerns tables of both modes, the rules of enforced tables hold as if the observed tables
// weren't registered (docs/adopting.md).
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
