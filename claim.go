package sqlfence

import (
	"context"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/core"
)

// Claim fences rows that workers take, such as jobs of a queue. column, an integer column that only increases, counts
// the row's attempts; NULL counts as 0. Claim needs [Key], and can only be combined with [Resource], [InMode] and
// [Sealed]. A new row needs no token.
//
//   - An UPDATE that assigns the column takes rows over, and needs no token. If it doesn't increase the column of each
//     row, it fails with a [ConflictError] that has Assigned set. If the context carries a token of a row, a lower
//     claim than the row's is [ErrStale], a higher claim [ErrNotIssued].
//   - Other UPDATEs and DELETEs must present the row's claim by a token of [ClaimToken]. Another claim is
//     [ErrStale], a row without a token [ErrOutOfScope].
func Claim(column string) Rule {
	return func(t *registration) { t.Once(&t.Rules.Claim, "Claim", column) }
}

// ClaimOf makes writes of a table, such as results of jobs, present the claim of a row of another table, which must be
// registered under this name with [Claim]. A different claim than the row's, and the claim of a deleted row are
// [ErrStale]. A takeover waits until the write has committed.
//
// With [Key], each row needs the claim of the row that it names: under WithTable("results", ClaimOf("jobs"),
// Key("job_id")) a result without the claim of its job is [ErrOutOfScope]. All claims that the context carries for the
// other table must be current. A context without a claim is [ErrNoFence]; a token source isn't called.
//
// Of the rules about tokens only Key, [Optional] and [UnfencedInserts] work with ClaimOf. A statement that writes both
// tables is refused.
func ClaimOf(table string) Rule {
	return func(t *registration) { t.Once(&t.ClaimOf, "ClaimOf", table) }
}

// WithTakeover returns a context for UPDATEs that take rows over (see [Claim]) without assigning the claim column: the
// guard adds 1 to the column. If the context carries a row's [ClaimToken], the token must equal the row's claim before
// the UPDATE, otherwise the UPDATE is refused as under [Claim]. A row without a token in the context is taken over
// without a comparison. A DELETE of a table with Claim is refused under this context. Other tables aren't affected.
func WithTakeover(ctx context.Context) context.Context { return core.WithTakeover(ctx) }

// ClaimToken returns the token of a claimed row. resource is the table's (see [Resource]). key, the row's key, is an
// integer, a string or a UUID. generation is the value of the column of [Claim] after the takeover. Another type of
// key, and an invalid token are [ErrInvalid]; a generation over [MaxToken] is [ErrTokenLimit].
func ClaimToken(resource string, key any, generation int64) (Token, error) {
	text, _, ok := basedriver.Text(key, true)
	if !ok {
		return Token{}, fmt.Errorf("%w: ClaimToken: a key of the type %T; pass an integer, a text or a UUID",
			ErrInvalid, key)
	}
	t := Token{Name: resource + "/" + text, Value: generation}
	return t, t.Validate()
}
