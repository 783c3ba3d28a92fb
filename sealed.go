package sqlfence

import "errors"

// Sealed has the database itself refuse every write of the table that doesn't prove its token, from
// any client: another program, psql, a stored function, a trigger, a cascade. It is a rule on top
// of [RowFence] or [Claim], may be combined with the others, and refuses nothing by itself: the seal is
// triggers, which schema.Seal installs. docs/sealed.md has what each kind of client sees.
//
// A guarded write proves its token by assigning the token's negative to the fence column,
// which the triggers turn into the token; with Claim, the claim's to its column, where a write that
// raises the claim proves nothing. As long as the table isn't sealed, statements are those without
// Sealed. So a program with Sealed can be deployed first, and the table sealed while it runs. The
// database is asked for the seal once, before the first guarded statement, and again after a write that
// the seal has refused; such a statement is sent once more if it stands outside of a transaction, and
// else fails with a temporary error (see [Retry]).
//
// A table with [Optional] or [UnfencedInserts] can't be sealed, nor one of SQLite. The seal
// holds whatever the mode: in [Observe] mode, and under [Bypass], the database refuses.
//
// Without options each write proves its token by itself.
func Sealed(opts ...SealOption) Rule {
	return func(t *registration) {
		t.Rules.Sealed = true
		for _, o := range opts {
			if o == nil {
				t.Fail(errors.New("Sealed: nil option"))
				continue
			}
			o(t)
		}
	}
}

// A SealOption sets up what the seal of a table accepts. See [Sealed].
type SealOption func(*registration)

// FromTransaction has the seal take the token of the transaction for a write that proves none by itself, so
// that programs in other languages write to the table with the statements that they have:
//
//	SELECT set_config('sqlfence.tokens', 'books:000000000000042 orders:000000000000007', true)
//
// These are tokens as [Token.String] writes them, with blanks between them. They hold until the transaction
// ends. A value that was set for the session proves nothing; docs/sealed.md says how the seal distinguishes
// the two, and which privilege the table's owner needs for that. Statements of sqlfence prove their own
// token, as without it. On PostgreSQL alone: elsewhere schema.Seal refuses the table.
func FromTransaction() SealOption {
	return func(t *registration) { t.FromTransaction = true }
}
