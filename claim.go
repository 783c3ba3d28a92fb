package sqlfence

import (
	"context"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/core"
)

// Claim fences rows that workers take, such as jobs of a queue. column, an integer column that only increases, counts
// the row's attempts; NULL counts as 0. Claim needs [Key], and can only be combined with [Resource], [InMode] and
// [Sealed]. docs/data/rules.md has the outcome of each statement.
//
//   - An INSERT needs no token.
//   - An UPDATE that assigns the column takes rows over, and needs no token. If it doesn't increase the column of each
//     row, it fails with a [ConflictError] that has Assigned set.
//   - Other UPDATEs and DELETEs must present the row's claim by a [ClaimToken]. A token with another value than the
//     row's claim is [ErrStale], and a row that no token names is [ErrOutOfScope].
func Claim(column string) Rule {
	return func(t *registration) { t.Once(&t.Rules.Claim, "Claim", column) }
}

// ClaimOf makes writes of a table, such as results of jobs, present the claim of a row of another table, which must be
// registered under this name with [Claim]. All claims of the other table in the context must be current: a claim that
// its row doesn't have any more, or of a deleted row, is [ErrStale]. Without a claim the write is [ErrNoFence]; a
// source of [WithTokenSource] isn't called. A takeover of a row waits until the writes that presented its claim have
// committed.
//
// With [Key], each row needs the claim of the row that it names: under WithTable("results", ClaimOf("jobs"),
// Key("job_id")) a result without its job's claim is [ErrOutOfScope].
func ClaimOf(table string) Rule {
	return func(t *registration) { t.Once(&t.ClaimOf, "ClaimOf", table) }
}

// WithTakeover returns a context in which UPDATEs and upserts take rows over without assigning the column of [Claim]:
// the guard adds 1. A [ClaimToken] in the context must equal the claim of its row; rows without a token aren't
// compared. A DELETE is refused.
func WithTakeover(ctx context.Context) context.Context { return core.WithTakeover(ctx) }

// ClaimToken returns the token of a claimed row. resource is the table's (see [Resource]). key, the row's key, is an
// integer, a string or a UUID. generation is the value of the column of [Claim] after the takeover. An invalid argument
// is [ErrInvalid], and a generation over [MaxToken] is [ErrTokenLimit].
func ClaimToken(resource string, key any, generation int64) (Token, error) {
	text, _, ok := basedriver.Text(key, true)
	if !ok {
		return Token{}, fmt.Errorf("%w: ClaimToken: a key of the type %T; pass an integer, a text or a UUID",
			ErrInvalid, key)
	}
	t := Token{Name: resource + "/" + text, Value: generation}
	return t, t.Validate()
}
