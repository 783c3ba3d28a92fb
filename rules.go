package sqlfence

import (
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/nfc"
)

// A Rule guards a registered table (see [WithTable]). docs/rules.md compares the rules; docs/data/rules.md has limits.
type Rule func(*registration)

// RowFence stores the highest token that has written a row in column, a 64-bit integer column (bigint) that only
// sqlfence writes. A lower token is [ErrStale]. NULL and 0 mean that no token has written the row.
//
// RowFence alone doesn't know which tokens were issued: a made-up high token passes, and makes lower tokens stale. A
// deleted row has no token, so an older token can insert it again. [Ledger] refuses both.
func RowFence(column string) Rule {
	return func(t *registration) { t.Once(&t.Rules.FenceColumn, "RowFence", column) }
}

// Ledger requires the newest token of its name in the ledger, the table fencing_tokens, where package tokens issues and
// adopts tokens. A lower token is [ErrStale], a higher token [ErrNotIssued]. The guarded table needs no column. Ledger
// is the default, and can be combined with [RowFence].
//
// On SQLite the ledger must be in the table's file. If several servers write to one database, as in a Galera cluster,
// writes fail with an [UnguardableError].
func Ledger() Rule {
	return func(t *registration) { t.Rules.Ledger = true }
}

// Resource sets the name of the table's tokens. The default is the table's registered name.
func Resource(name string) Rule {
	return func(t *registration) {
		if fault := core.NameDefect(nfc.String(name)); fault != "" {
			t.Fail(errors.New("Resource: " + fault))
			return
		}
		t.Once(&t.Resource, "Resource", nfc.String(name))
	}
}

// SingleUse refuses a token that the row already holds, so that each token writes a row only once, and a driver's retry
// of an applied write is refused. It needs [RowFence].
func SingleUse() Rule {
	return func(t *registration) { t.Rules.SingleUse = true }
}

// Optional sends writes without a token unguarded, each with an [Unfenced] event, while you convert an application.
// Writes with a token are guarded.
func Optional() Rule {
	return func(t *registration) { t.Optional = true }
}

// UnfencedInserts lets a statement that only adds rows run without a token, because no context can carry a token for a
// generated key. A token in the context is still presented.
//
// A process with a stale token can then add rows without it. Such a row has an empty fence column (NULL or the default
// 0), so the first token to write the row passes, however old.
func UnfencedInserts() Rule {
	return func(t *registration) { t.Rules.UnfencedInserts = true }
}

// Exempt excludes a table from the patterns of [WithTable]: its writes aren't guarded. It can't be combined with other
// rules. If it is registered with a schema, as shop.logs, a pattern still guards or refuses writes to plain logs.
func Exempt() Rule {
	return func(t *registration) { t.Rules.Exempt = true }
}

// InMode sets the table's mode, in place of [WithMode]. In a statement on tables of both modes, enforced rules hold as
// if observed tables weren't registered.
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
