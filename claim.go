package sqlfence

import (
	"context"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/core"
)

// Claim fences rows that workers take, such as the jobs of a queue: column is the row's own generation (attempt,
// epoch), an integer column that only rises; NULL counts as 0. It needs [Key], and goes with no other rule but
// [Resource], [InMode] and [Sealed]. No column is added for it, and no row of the ledger.
//
//   - An UPDATE that assigns the column takes its rows over. It needs no token, and may reach any number of rows; the
//     database refuses it with a [ConflictError] that has Assigned set, unless it raises the column of each. So do the
//     updates of an upsert and of a MERGE. [WithTakeover] is for statements that leave the column out. If the
//     context carries a token of a row that is taken, the token is compared: an older claim is [ErrStale], a
//     higher one [ErrNotIssued], and the whole statement is refused.
//   - Every other UPDATE and DELETE presents the claim of each row that it reaches: a token called resource + "/" + key
//     with the generation as its value, which [ClaimToken] makes. A row of another generation is [ErrStale], and one
//     without a token [ErrOutOfScope]. So a worker that was replaced is refused, whatever its WHERE says; writes that
//     don't raise the column, such as a heartbeat, keep the claim.
//   - A new row needs no token.
//
// docs/rules.md has the details, and what differs by database.
func Claim(column string) Rule {
	return func(t *registration) { t.Once(&t.Rules.Claim, "Claim", column) }
}

// ClaimOf has the writes of this table, such as the results of jobs, present the claim of a row of another one, which
// has to be registered with [Claim], as its name is given to [WithTable]; else it is [ErrInvalid]. It is what [Ledger]
// is with fencing_tokens: inside the statement the guard asks that table whether the tokens are its rows' claims, and
// holds off a takeover until the write commits, at each isolation level. A row of another generation, or one that is
// gone, is [ErrStale].
//
//   - With [Key] each row is tied to the row that it names: of WithTable("results", ClaimOf("jobs"), Key("job_id")) a
//     row is written with the claim of its job, and is [ErrOutOfScope] without it.
//   - All claims that the context carries for rows of that table have to hold, also with Key those for rows that the
//     statement doesn't reach. None is [ErrNoFence].
//
// The tokens are those of the other table ([ClaimToken]), so it goes with no Resource, and with no other rule about
// tokens but [Key], [Optional] and [UnfencedInserts]. No source gives them ([WithTokenSource]). A statement that writes both
// tables is refused: write two in one transaction. docs/rules.md has the details.
func ClaimOf(table string) Rule {
	return func(t *registration) { t.Once(&t.ClaimOf, "ClaimOf", table) }
}

// WithTakeover returns a context for statements that take rows over without assigning the column of their table's
// [Claim], such as a rescuer that only sets a state: the guard of an UPDATE adds 1 to it. A DELETE is refused with it.
// Tokens of the rows, if the context carries any, are compared. For tables without Claim it changes nothing. A
// transaction doesn't keep it.
func WithTakeover(ctx context.Context) context.Context { return core.WithTakeover(ctx) }

// ClaimToken returns the token of a claimed row: resource is that of the table ([Resource], by default its
// name), key is the row's key, an integer, a text or a UUID, and generation is what the statement that took
// the row over has made of the column of [Claim], as RETURNING shows it. A key of another type, and a token
// that isn't valid, are [ErrInvalid]; a generation over [MaxToken] is [ErrTokenLimit].
func ClaimToken(resource string, key any, generation int64) (Token, error) {
	text, _, ok := basedriver.Text(key, true)
	if !ok {
		return Token{}, fmt.Errorf("%w: ClaimToken: a key of the type %T; pass an integer, a text or a UUID",
			ErrInvalid, key)
	}
	t := Token{Name: resource + "/" + text, Value: generation}
	return t, t.Validate()
}
