package sqlfence

import "errors"

// Sealed prepares programs for a sealed table, in which triggers refuse each write without a valid token from
// any client, such as another program, psql, or a stored function. schema.Seal installs the triggers. Sealed
// itself refuses nothing: deploy all programs with it, then seal the table while they run. If a program sent a
// statement before it knew of the seal, the statement fails with a temporary error (see [Retry]).
//
// A seal also refuses writes in [Observe] mode and under [Bypass]. Sealed needs [RowFence] or [Claim], and
// doesn't go with [Optional], [UnfencedInserts] and [EditLock]. schema.Seal refuses SQLite. Without options
// each write must present its own token. docs/sealed.md describes what each client sees.
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

// A SealOption sets what the seal of a table accepts. See [Sealed].
type SealOption func(*registration)

// FromTransaction lets writes without a token of their own present the transaction's token, so that programs in
// other languages can keep their statements:
//
//	SELECT set_config('sqlfence.tokens', 'books:000000000000042 orders:000000000000007', true)
//
// The value has tokens in the form of [Token.String], separated by blanks, and ends with the transaction. A
// value that was set for the session isn't accepted. docs/sealed.md describes which privileges that takes. On
// other databases than PostgreSQL schema.Seal refuses the table.
func FromTransaction() SealOption {
	return func(t *registration) { t.FromTransaction = true }
}
