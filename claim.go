package sqlfence

import (
	"context"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/core"
)

// Claim fences rows that workers take, such as the jobs of a queue. column is the row's attempt or generation,
// an integer column that only rises; NULL counts as 0. Claim needs [Key], and can only be combined with
// [Resource], [InMode] and [Sealed]. A new row needs no token.
//
//   - An UPDATE that assigns the column takes rows over, and needs no token. It must raise the column of each
//     row, otherwise it fails with a [ConflictError] that has Assigned set. If the context carries a token of
//     such a row, an older claim than the row's is [ErrStale], a higher one [ErrNotIssued].
//   - Other UPDATEs and DELETEs must present the row's claim by a token of [ClaimToken]. Another claim is
//     [ErrStale], a row without a token [ErrOutOfScope].
func Claim(column string) Rule {
	return func(t *registration) { t.Once(&t.Rules.Claim, "Claim", column) }
}

// ClaimOf makes the writes of this table, such as results of jobs, present the claim of a row of another table,
// which must be registered under this name with [Claim]. Another claim than the row's, and a claim of a row
// that is gone are [ErrStale]. A takeover waits until the write has committed.
//
// With [Key], each row needs the claim of the row that it names: under WithTable("results", ClaimOf("jobs"),
// Key("job_id")) a result without the claim of its job is [ErrOutOfScope]. All claims that the context carries
// for rows of the other table must hold. A context without one is [ErrNoFence]; a token source isn't called.
//
// Of the rules about tokens only Key, [Optional] and [UnfencedInserts] go with ClaimOf. A statement that writes
// both tables is refused.
func ClaimOf(table string) Rule {
	return func(t *registration) { t.Once(&t.ClaimOf, "ClaimOf", table) }
}

// WithTakeover returns a context in which UPDATEs take rows over without assigning the column of [Claim]: the
// guard adds 1 to it. A DELETE is refused. Tokens of the rows in the context are compared. It doesn't affect
// tables without Claim.
func WithTakeover(ctx context.Context) context.Context { return core.WithTakeover(ctx) }

// ClaimToken returns the token of a claimed row. resource is the table's (see [Resource]). key is the row's
// key, an integer, a string or a UUID. generation is the value that the takeover gave the column of [Claim].
// Another type of key, and an invalid token are [ErrInvalid]; a generation over [MaxToken] is [ErrTokenLimit].
func ClaimToken(resource string, key any, generation int64) (Token, error) {
	text, _, ok := basedriver.Text(key, true)
	if !ok {
		return Token{}, fmt.Errorf("%w: ClaimToken: a key of the type %T; pass an integer, a text or a UUID",
			ErrInvalid, key)
	}
	t := Token{Name: resource + "/" + text, Value: generation}
	return t, t.Validate()
}
