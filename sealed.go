package sqlfence

import "errors"

// Sealed prepares programs for a sealed table, in which triggers refuse writes without a valid token from any client,
// such as psql or a stored function. Sealed itself refuses nothing: when all programs have Sealed, call schema.Seal,
// which installs the triggers (docs/sealed.md). Programs that write meanwhile may get a temporary error (see [Retry]).
//
// A seal also refuses writes in [Observe] mode and under [Bypass]. Sealed needs [RowFence] or [Claim], and doesn't work
// with [Optional], [UnfencedInserts], [EditLock] and SQLite.
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

// A SealOption sets what a seal accepts (see [Sealed]).
type SealOption func(*registration)

// FromTransaction lets writes without a token present the transaction's tokens, so that programs in other languages can
// keep their statements (docs/sealed.md):
//
//	SELECT set_config('sqlfence.tokens', concat('books:000000000000042', ' ', txid_current()), true)
//
// The value has tokens in the form of [Token.String] and the transaction's number, separated by blanks, and counts only
// in this transaction. On other databases than PostgreSQL schema.Seal refuses the table.
func FromTransaction() SealOption {
	return func(t *registration) { t.FromTransaction = true }
}
