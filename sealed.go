package sqlfence

import "errors"

// Sealed prepares programs for a sealed table, in which triggers refuse writes without a valid token from any client,
// such as psql or a stored function. schema.Seal installs the triggers. Sealed itself refuses nothing: deploy all
// programs with Sealed, then seal the table while they run. A statement sent before the program knew of the seal fails
// with a temporary error (see [Retry]).
//
// A seal also refuses writes in [Observe] mode and under [Bypass]. Sealed needs [RowFence] or [Claim], and doesn't
// work with [Optional], [UnfencedInserts] and [EditLock]. schema.Seal refuses SQLite. Without options each write must
// itself present a token. docs/sealed.md describes what each client sees.
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

// FromTransaction lets writes without a token present the transaction's token, so that programs in other languages can
// keep their statements:
//
//	SELECT set_config('sqlfence.tokens', 'books:000000000000042 orders:000000000000007', true)
//
// The value has tokens in the form of [Token.String], separated by blanks, and ends with the transaction. A value set
// for the session is refused. docs/sealed.md describes the necessary privileges. On other databases than PostgreSQL
// schema.Seal refuses the table.
func FromTransaction() SealOption {
	return func(t *registration) { t.FromTransaction = true }
}
