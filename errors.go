package sqlfence

import (
	"errors"
	"fmt"
	"time"
)

// The sentinels that errors.Is finds in what a refused statement returns. But for
// [ErrUnknownOutcome], none of these statements changed anything.
var (
	// ErrStale: a newer token has been seen, on the row or in the ledger. The
	// caller has lost the resource; retrying with the same token can't help.
	ErrStale = errors.New("sqlfence: stale fencing token")

	// ErrNotIssued: with [Ledger], a token higher than the newest one that the
	// ledger knows: never issued or adopted here, or lost by a failover or a restore.
	// The same token passes only once it has been adopted.
	ErrNotIssued = errors.New("sqlfence: fencing token was not issued here")

	// ErrNoFence: a write on a registered table without a usable token in its context.
	ErrNoFence = errors.New("sqlfence: no fencing token")

	// ErrOutOfScope: the write reaches a row that none of the context's tokens covers (see [Key]).
	ErrOutOfScope = errors.New("sqlfence: row out of the token's scope")

	// ErrUnguardable: a statement that writes, or may write, to a registered
	// table in a way that can't be guarded. It was not sent to the database,
	// unless what it met there is to blame (see [Serial]).
	ErrUnguardable = errors.New("sqlfence: statement can't be guarded")

	// ErrUnknownName: the ledger has no row for the token's name.
	// Package tokens creates it with Ensure, Issue or Adopt.
	ErrUnknownName = errors.New("sqlfence: name unknown to the ledger")

	// ErrConflict: the row has another serial than the one the caller read (see
	// [WithSerial]), or the statement assigned one that doesn't raise it (see [Serial]).
	ErrConflict = errors.New("sqlfence: serial conflict")

	// ErrGone: the row that the caller read no longer exists (see [WithSerial]).
	ErrGone = errors.New("sqlfence: row is gone")

	// ErrNoSerial: a write on a row that needs one without a serial in its context
	// (see [Required]).
	ErrNoSerial = errors.New("sqlfence: no serial")

	// ErrLocked: another user holds the row's lock (see [EditLock]).
	ErrLocked = errors.New("sqlfence: row is locked")

	// ErrUnknownOutcome: the connection was lost after a guarded write had been
	// sent; it may have been applied. Unlike the others it is not a refusal. It
	// comes where lib/pq and pgx answer driver.ErrBadConn, on which database/sql
	// would send the write again, and apply it twice.
	ErrUnknownOutcome = errors.New("sqlfence: connection lost, the write may have been applied")

	// ErrTokenLimit: a token over [MaxToken], given or about to be issued.
	ErrTokenLimit = errors.New("sqlfence: token limit reached")

	// ErrInvalid: an argument that can't be used, such as a floor of 0 for
	// tokens.Store.Repair. Nothing was sent.
	ErrInvalid = errors.New("sqlfence: invalid argument")
)

// A StaleError tells which write was refused because a newer token had been
// seen. errors.Is finds [ErrStale] in it, errors.As finds the base driver's own
// error behind it.
type StaleError struct {
	Table   string // as registered with [WithTable]
	Token   Token  // what the write carried
	Current int64  // the newer value that it met

	err error
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%v: table %q: token %s, but %d has been seen", ErrStale, e.Table, e.Token, e.Current)
}

// Is reports whether target is [ErrStale].
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Unwrap returns the base driver's error.
func (e *StaleError) Unwrap() error { return e.err }

// Temporary returns false: a stale token stays stale.
func (e *StaleError) Temporary() bool { return false }

// A NotIssuedError tells which write was refused because the ledger doesn't know
// its token. errors.Is finds [ErrNotIssued] in it, errors.As finds the base driver's
// own error behind it.
type NotIssuedError struct {
	Table   string // as registered with [WithTable]
	Token   Token  // what the write carried
	Current int64  // the newest value issued or adopted for the token's name; 0 for none

	err error
}

func (e *NotIssuedError) Error() string {
	return fmt.Sprintf("%v: table %q: token %s, but the newest is %d; issue a token by tokens.Issue, or tokens.Adopt one of another service first",
		ErrNotIssued, e.Table, e.Token, e.Current)
}

// Is reports whether target is [ErrNotIssued].
func (e *NotIssuedError) Is(target error) bool { return target == ErrNotIssued }

// Unwrap returns the base driver's error.
func (e *NotIssuedError) Unwrap() error { return e.err }

// Temporary returns false: waiting makes no token issued.
func (e *NotIssuedError) Temporary() bool { return false }

// A ConflictError tells that a row had changed since the caller read it, or that
// a statement would have set its serial back. errors.Is finds [ErrConflict] in it,
// errors.As finds the base driver's own error behind it.
type ConflictError struct {
	Table    string // as registered with [WithTable]
	Expected int64  // the serial that the caller had read; 0 if Assigned
	Current  int64  // the row's serial

	// Assigned tells that the statement itself assigned the serial, to NULL or a
	// number that isn't higher than Current.
	Assigned bool

	err error
}

func (e *ConflictError) Error() string {
	if e.Assigned {
		return fmt.Sprintf("%v: table %q: the statement assigned a serial that doesn't raise the row's, which is %d; leave the column out, it rises by itself", ErrConflict, e.Table, e.Current)
	}
	return fmt.Sprintf("%v: table %q: expected serial %d, but it is %d", ErrConflict, e.Table, e.Expected, e.Current)
}

// Is reports whether target is [ErrConflict].
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// Unwrap returns the base driver's error.
func (e *ConflictError) Unwrap() error { return e.err }

// Temporary returns true, as reading the row again and repeating the change can
// succeed; but false if Assigned: the statement has to be written differently.
func (e *ConflictError) Temporary() bool { return !e.Assigned }

// A LockedError tells who is editing the row that a write was refused for (see
// [EditLock] and package rowlock). errors.Is finds [ErrLocked] in it, errors.As
// finds the base driver's own error behind it, where the database refused.
type LockedError struct {
	Table  string    // as registered with [WithTable], or as package rowlock was told
	By     string    // who holds the lock, as text
	Since  time.Time // when it was taken, in UTC; zero if the row doesn't tell
	Expiry time.Time // when it lapses, in UTC, unless it is renewed

	err error
}

func (e *LockedError) Error() string {
	text := fmt.Sprintf("%v: table %q: by %q", ErrLocked, e.Table, e.By)
	if !e.Since.IsZero() {
		text += " since " + e.Since.UTC().Format(time.RFC3339)
	}
	if !e.Expiry.IsZero() {
		text += " until " + e.Expiry.UTC().Format(time.RFC3339)
	}
	return text
}

// Is reports whether target is [ErrLocked].
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// Unwrap returns the base driver's error, or nil.
func (e *LockedError) Unwrap() error { return e.err }

// Temporary returns false: the lock is held until its holder gives it back, or
// it lapses, which takes as long as a person does.
func (e *LockedError) Temporary() bool { return false }

// An UnguardableError tells why a statement was refused before it reached the
// database, and what to write instead. errors.Is finds [ErrUnguardable] in it.
type UnguardableError struct {
	Table  string // as registered with [WithTable], or one of sqlfence's own; empty if the statement couldn't be read far enough to tell
	Reason string // what is wrong and what to write instead
	Offset int    // where in the statement, in bytes from its start; of one that pgx's query rewriter has made, in its text
}

func (e *UnguardableError) Error() string {
	if e.Table == "" {
		return fmt.Sprintf("%v: at byte %d: %s", ErrUnguardable, e.Offset, e.Reason)
	}
	return fmt.Sprintf("%v: table %q, at byte %d: %s", ErrUnguardable, e.Table, e.Offset, e.Reason)
}

// Is reports whether target is [ErrUnguardable].
func (e *UnguardableError) Is(target error) bool { return target == ErrUnguardable }

// Temporary returns false: the statement has to be written differently.
func (e *UnguardableError) Temporary() bool { return false }

// rowError is a refusal by the database that has no facts beyond its sentinel.
type rowError struct {
	sentinel error
	detail   string
	err      error
}

func (e *rowError) Error() string {
	return fmt.Sprintf("%v: %s", e.sentinel, e.detail)
}
func (e *rowError) Is(target error) bool { return target == e.sentinel }
func (e *rowError) Unwrap() error        { return e.err }

// An outcomeError is ErrUnknownOutcome with the base driver's reason. It doesn't
// unwrap to that, as database/sql would find driver.ErrBadConn in it.
type outcomeError struct{ reason string }

func (e *outcomeError) Error() string        { return fmt.Sprintf("%v: %s", ErrUnknownOutcome, e.reason) }
func (e *outcomeError) Is(target error) bool { return target == ErrUnknownOutcome }
