package sqlfence

import "github.com/sqlfence/sqlfence/internal/core"

// Sealed has the database itself refuse every write of the table that doesn't prove its token, from
// any client: another program, psql, a stored function, a trigger, a cascade. It is a rule on top
// of [RowFence], may be combined with the others, and refuses nothing by itself: the seal is
// triggers, which schema.Seal installs. docs/sealed.md has what each kind of client sees.
//
// A guarded write proves its token by assigning the token's negative to the fence column,
// which the triggers turn into the token. As long as the table isn't sealed, statements are
// those of RowFence. So a program with Sealed can be deployed first, and the table
// sealed while it runs. The database is asked for the seal once, before the first
// guarded statement, and again after a write that the seal has refused; such a statement
// is sent once more if it stands outside of a transaction, and else fails with a temporary error
// (see [Retry]).
//
// A table with [Optional] or [UnfencedInserts] can't be sealed, nor one of SQLite. The seal
// holds whatever the mode: in [Observe] mode, and under [Bypass], the database refuses.
func Sealed() Rule {
	return func(t *core.Table) { t.Rules.Sealed = true }
}
