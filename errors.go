package sqlfence

import (
	"errors"
	"fmt"
)

// Sentinel errors, for errors.Is. A refused statement has changed nothing; only after [ErrUnknownOutcome] it may have
// changed rows.
//
// Error types such as [StaleError] have the details. Unwrap returns the base driver's error, or nil if nothing was
// sent. Temporary returns false, except for some ConflictErrors.
var (
	// ErrStale: another holder has taken over the resource. Stop working; a retry with the same token can't succeed. A
	// call with an ended context is ErrStale if the [context.Cause] is, such as package lease's LostError. If the error
	// is also ErrUnknownOutcome, the write may have been applied.
	ErrStale = errStale

	// ErrNotIssued: the token is higher than the newest in the [Ledger]: it was never issued or adopted here, or a
	// failover or restore lost it. With [Claim], a takeover presents a claim above the row's.
	ErrNotIssued = errNotIssued

	// ErrNoFence: the context carries no token for the table, or an invalid token (then also [ErrInvalid]).
	ErrNoFence = errNoFence

	// ErrOutOfScope: no token of the context covers a row that the write reaches ([Key]).
	ErrOutOfScope = errOutOfScope

	// ErrUnguardable: the statement may write to a registered table and can't be guarded (docs/statements.md).
	ErrUnguardable = errors.New("sqlfence: statement can't be guarded")

	// ErrUnknownName: the ledger has no row for the token's name. Package tokens creates rows (Ensure, Issue, Adopt).
	ErrUnknownName = errUnknownName

	// ErrConflict: the row's serial isn't the one that the caller read ([WithSerial]), or the statement doesn't
	// increase a serial or claim that it assigns.
	ErrConflict = errors.New("sqlfence: serial conflict")

	// ErrGone: the row that the caller read no longer exists ([WithSerial]).
	ErrGone = errGone

	// ErrNoSerial: the context carries no serial, but the table requires one ([Required]).
	ErrNoSerial = errNoSerial

	// ErrLocked: another user holds the row's lock ([EditLock]).
	ErrLocked = errLocked

	// ErrUnknownOutcome: a guarded write, or the commit of guarded writes, got no response, so the database may have
	// applied it. It wraps the driver's error, but no driver.ErrBadConn, after which database/sql would write again.
	ErrUnknownOutcome = errUnknownOutcome

	// ErrStandby: package tokens or lease queried a standby or read-only server, which may lag. Connect to the primary.
	ErrStandby = errors.New("sqlfence: the server that answered is a standby or read-only, and may be behind; " +
		"ask the primary")

	// ErrTokenLimit: a token would be over [MaxToken].
	ErrTokenLimit = errTokenLimit

	// ErrInvalid: an argument is invalid, such as contradicting options or an empty name. Nothing was sent.
	ErrInvalid = errInvalid
)

// sentinels are all sentinel errors.
var sentinels = []error{ErrStale, ErrNotIssued, ErrNoFence, ErrOutOfScope, ErrUnguardable, ErrUnknownName, ErrConflict,
	ErrGone, ErrNoSerial, ErrLocked, ErrUnknownOutcome, ErrStandby, ErrTokenLimit, ErrInvalid, ErrNotSetUp}

// refusedAs is embedded in the error types of refusals. It matches the sentinel of its kind, wraps the base driver's
// error if the write was sent, and isn't temporary, because the same write would be refused again.
type refusedAs[K kind] struct{ err error }

// A kind is the kind of a refusal. A type parameter holds the kind, so that the zero value of an error has a kind.
type kind interface{ sentinel() error }

func (refusedAs[K]) Is(target error) bool { var k K; return target == k.sentinel() }
func (e refusedAs[K]) Unwrap() error      { return e.err }
func (refusedAs[K]) Temporary() bool      { return false }

type (
	isStale       struct{}
	isNotIssued   struct{}
	isUnguardable struct{}
	isConflict    struct{}
	isLocked      struct{}
	isNotSetUp    struct{}
)

// The structs embed these aliases, because go doc prints an embedded generic type and hides an unexported name.
type (
	refusedAsStale       = refusedAs[isStale]
	refusedAsNotIssued   = refusedAs[isNotIssued]
	refusedAsUnguardable = refusedAs[isUnguardable]
	refusedAsConflict    = refusedAs[isConflict]
	refusedAsLocked      = refusedAs[isLocked]
	refusedAsNotSetUp    = refusedAs[isNotSetUp]
)

func (isStale) sentinel() error       { return ErrStale }
func (isNotIssued) sentinel() error   { return ErrNotIssued }
func (isUnguardable) sentinel() error { return ErrUnguardable }
func (isConflict) sentinel() error    { return ErrConflict }
func (isLocked) sentinel() error      { return ErrLocked }
func (isNotSetUp) sentinel() error    { return ErrNotSetUp }

// A StaleError has the details of an [ErrStale]. For a lease that its holder has lost, see LostError of package lease.
type StaleError struct {
	refusedAsStale

	Table   string // as registered
	Token   Token  // the write's
	Current int64  // the newer value of the row or ledger; with [Claim] the row's claim, 0 if the row is gone

	gone bool // the row of the claim is gone
}

func (e *StaleError) Error() string {
	if e.Current == e.Token.Value { // SingleUse
		return fmt.Sprintf("%v: table %q: token %s has written here before, and is for a single use; "+
			"take a new token for each write", ErrStale, e.Table, e.Token)
	}
	switch {
	case e.gone:
		return fmt.Sprintf("%v: table %q: token %s, but the row that it claims is gone; "+
			"stop working, don't retry", ErrStale, e.Table, e.Token)
	case e.Current < e.Token.Value: // the row was deleted and inserted again
		return fmt.Sprintf("%v: table %q: token %s, but the row's claim is %d: the row is gone or was made again; "+
			"stop working, don't retry", ErrStale, e.Table, e.Token, e.Current)
	}
	return fmt.Sprintf("%v: table %q: another holder has taken over %q (its token is %d, this write's is %d); "+
		"stop working, don't retry", ErrStale, e.Table, e.Token.Name, e.Current, e.Token.Value)
}

// A NotIssuedError has the details of an [ErrNotIssued].
type NotIssuedError struct {
	refusedAsNotIssued

	Table string // as registered
	Token Token  // the write's
	// Current is the newest issued or adopted value, or 0 if there is none; with [Claim] the row's claim.
	Current int64

	claim bool // Current is the claim of a row
}

func (e *NotIssuedError) Error() string {
	if e.claim {
		return fmt.Sprintf("%v: table %q: token %s, but the row's claim is only %d: the row was made anew, or the "+
			"database has lost a takeover, as by a restore; take the row over without this token",
			ErrNotIssued, e.Table, e.Token, e.Current)
	}
	return fmt.Sprintf("%v: table %q: token %s, but the newest is %d; issue one, or adopt another service's "+
		"(tokens.Store.Issue, Adopt); if the ledger has lost tokens, as by a restore, raise it (Repair)",
		ErrNotIssued, e.Table, e.Token, e.Current)
}

// An UnguardableError has the details of an [ErrUnguardable].
type UnguardableError struct {
	refusedAsUnguardable

	Table  string // as registered, or one of sqlfence's own; empty if unknown
	Reason string // what is wrong and what to write instead
	Column string // with a type or value that the guard can't compare; or empty

	Server string // an untested server, for [WithUntestedServer]; or empty

	// Offset is the position in bytes in the statement or the result of a pgx.QueryRewriter, or -1.
	Offset int
}

func (e *UnguardableError) Error() string {
	where := ""
	if e.Table != "" {
		where = fmt.Sprintf("table %q", e.Table)
	}
	if e.Offset >= 0 {
		if where != "" {
			where += ", "
		}
		where += fmt.Sprintf("at byte %d", e.Offset)
	}
	if where != "" {
		where += ": "
	}
	return fmt.Sprintf("%v: %s%s", ErrUnguardable, where, e.Reason)
}
