package sqlfence

import (
	"errors"
	"fmt"
)

// Sentinel errors, for use with errors.Is. A statement that fails with one of them
// has changed nothing, except with [ErrUnknownOutcome], where it may have.
//
// The types of errors have a method Temporary, which says whether the same can succeed later: a
// [ConflictError] can, the others can't.
var (
	// ErrStale: the row or the ledger has a newer token, because another holder has taken over the resource.
	// Stop working; a retry with the same token can't succeed. A call also fails with ErrStale if the
	// [context.Cause] of its ended context is an ErrStale, such as package lease's LostError. In that case the
	// database has compared nothing, and if the error is ErrUnknownOutcome as well, the write may have been applied.
	ErrStale = errStale

	// ErrNotIssued: with [Ledger], a token higher than the newest one that the
	// ledger knows: never issued or adopted here, or lost by a failover or a restore.
	// The same token passes only once it has been adopted. With [Claim], a statement takes a row over and presents a
	// token higher than the row's claim.
	ErrNotIssued = errNotIssued

	// ErrNoFence: the context carries no token for the table, or an invalid one (then also
	// [ErrInvalid]), and the source of [WithTokenSource], if there is one, returned none or failed; its error is
	// wrapped.
	ErrNoFence = errNoFence

	// ErrOutOfScope: the write reaches a row that none of the context's tokens covers (see [Key]).
	ErrOutOfScope = errOutOfScope

	// ErrUnguardable: a statement that writes, or may write, to a registered table in
	// a way that can't be guarded, or on a server on which guards aren't known to hold; see
	// [UnguardableError].
	ErrUnguardable = errors.New("sqlfence: statement can't be guarded")

	// ErrUnknownName: the ledger has no row for the token's name.
	// Package tokens creates it with Ensure, Issue or Adopt.
	ErrUnknownName = errUnknownName

	// ErrConflict: the row has another serial than the one the caller read (see
	// [WithSerial]), or the statement assigned a serial or a claim that doesn't raise it (see [Serial], [Claim]).
	ErrConflict = errors.New("sqlfence: serial conflict")

	// ErrGone: the row that the caller read no longer exists (see [WithSerial]).
	ErrGone = errGone

	// ErrNoSerial: the context carries no serial, but the write changes rows of a
	// table that requires one (see [Required]).
	ErrNoSerial = errNoSerial

	// ErrLocked: another user holds the row's lock (see [EditLock]).
	ErrLocked = errors.New("sqlfence: row is locked")

	// ErrUnknownOutcome: the driver sent a guarded write, or the commit of guarded writes, and received no
	// response, because the connection was lost or the context ended. The database may have applied the write.
	// The error wraps the base driver's error, except driver.ErrBadConn, if database/sql would repeat the write
	// or a COMMIT sent as a statement because of it. A write that was never sent, and a failure that the database
	// reported, are not ErrUnknownOutcome. If a context ends while rows are read, database/sql may return the
	// context's error without this one.
	ErrUnknownOutcome = errUnknownOutcome

	// ErrStandby: package tokens or lease sent a query to a server that takes no writes and may lag behind the
	// primary: a PostgreSQL standby, or a read_only server of MySQL or MariaDB. The result is unknown. Use a
	// pool that connects to the primary alone. Writes never fail with ErrStandby; a standby refuses them with an
	// error of its own.
	ErrStandby = errors.New("sqlfence: the server that answered is a standby or read-only, and may be behind; " +
		"ask the primary")

	// ErrTokenLimit: a token over [MaxToken], given or about to be issued.
	ErrTokenLimit = errTokenLimit

	// ErrInvalid: an invalid argument, such as an option that contradicts another,
	// an empty name, or a negative serial. Nothing was sent.
	ErrInvalid = errInvalid
)

// sentinels are all of them.
var sentinels = []error{ErrStale, ErrNotIssued, ErrNoFence, ErrOutOfScope, ErrUnguardable, ErrUnknownName, ErrConflict,
	ErrGone, ErrNoSerial, ErrLocked, ErrUnknownOutcome, ErrStandby, ErrTokenLimit, ErrInvalid, ErrNotSetUp}

// refusedAs is what the errors share that say why a write was refused: each is the sentinel of its kind,
// wraps the base driver's error if the write was sent, and isn't temporary, as the same write would be
// refused again.
type refusedAs[K kind] struct{ err error }

// A kind is that of a refusal. It is a type, so that the zero value of an error has it, too.
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

// A StaleError reports a write that was refused because its token is stale. errors.Is(err, [ErrStale]) is true
// for it. If the database refused the write, Unwrap returns the base driver's error. If the holder itself
// noticed that its lease is lost, the error is ErrStale without a StaleError.
type StaleError struct {
	refusedAsStale

	Table   string // as registered with [WithTable]
	Token   Token  // what the write carried
	Current int64  // the newer value, of the row or of the ledger; with [Claim] the row's claim, 0 if it is gone

	gone bool // the row of the claim is gone
}

func (e *StaleError) Error() string {
	if e.Current == e.Token.Value { // SingleUse
		return fmt.Sprintf("%v: table %q: token %s has written here before, and is for a single use", ErrStale, e.Table,
			e.Token)
	}
	switch {
	case e.gone:
		return fmt.Sprintf("%v: table %q: token %s, but the row that it claims is gone", ErrStale, e.Table, e.Token)
	case e.Current < e.Token.Value: // the row of a claim was made anew
		return fmt.Sprintf("%v: table %q: token %s, but the row's claim is %d", ErrStale, e.Table, e.Token, e.Current)
	}
	return fmt.Sprintf("%v: table %q: another holder has taken over %q (its token is %d, this write's is %d); "+
		"stop working, don't retry", ErrStale, e.Table, e.Token.Name, e.Current, e.Token.Value)
}

// A NotIssuedError reports a write that was refused because its token is higher than the ledger's newest token,
// or higher than the row's claim in a takeover ([Claim]). errors.Is(err, [ErrNotIssued]) is true for it, and
// Unwrap returns the base driver's error.
type NotIssuedError struct {
	refusedAsNotIssued

	Table string // as registered with [WithTable]
	Token Token  // what the write carried
	// Current is the newest value issued or adopted for the token's name, or 0 for none; with [Claim] the row's claim.
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

// An UnguardableError reports a statement that was refused because sqlfence can't guard it. The statement wrote
// nothing. errors.Is(err, [ErrUnguardable]) is true for it. Most such statements are refused before they are
// sent. If the database refused the statement, because of a value that it can't compare or because the server is
// untested, Unwrap returns the base driver's error.
type UnguardableError struct {
	refusedAsUnguardable

	Table  string // as registered with [WithTable], or one of sqlfence's own; empty if unknown
	Reason string // what is wrong and what to do instead

	// Column is the column that a guard compares and can't, for it isn't an integer column or holds
	// another value; repair it under [Bypass]. It is empty for every other reason, and if unknown.
	Column string

	// Server is the name of a server on which guards aren't known to hold, as [WithUntestedServer]
	// takes it. It is empty for every other reason, and if the server failed to raise a guard's error:
	// no option helps then.
	Server string

	// Offset is the position in the statement, in bytes from its start; -1 if the
	// error concerns no position. For a statement that a pgx.QueryRewriter has written
	// it is the position in that text.
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
