package core

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sqlfence/sqlfence/internal/lost"
	"github.com/sqlfence/sqlfence/internal/setuperr"
)

// The sentinel errors. Package sqlfence documents them.
var (
	ErrStale          = lost.ErrStale
	ErrNotIssued      = errors.New("sqlfence: fencing token was not issued here")
	ErrNoFence        = errors.New("sqlfence: no fencing token")
	ErrOutOfScope     = errors.New("sqlfence: row out of the token's scope")
	ErrUnknownName    = errors.New("sqlfence: name unknown to the ledger")
	ErrGone           = errors.New("sqlfence: row is gone")
	ErrNoSerial       = errors.New("sqlfence: no serial")
	ErrLocked         = errors.New("sqlfence: row is locked")
	ErrUnknownOutcome = errors.New("sqlfence: no answer, the write may have been applied")
	ErrTokenLimit     = errors.New("sqlfence: token limit reached")
	ErrInvalid        = errors.New("sqlfence: invalid argument")
)

// An ErrorFactory turns the core's facts into the error types and log records of the public package. err is the base
// driver's error, or nil if nothing was sent.
type ErrorFactory interface {
	// Stale: the row or the ledger has a newer value than the token; a claim has another value, or its row is gone.
	Stale(c Compared, err error) error
	// NotIssued: the ledger's newest value, or the row's claim, is below the token's value.
	NotIssued(c Compared, err error) error
	// Unguardable: the statement can't be guarded.
	Unguardable(u Unguarded, err error) error
	// Conflict: the row's version isn't the expected one, or the statement assigned a version or claim that isn't
	// higher than the row's.
	Conflict(c Conflict, err error) error
	// Locked: another user holds the row's lock. anonymous: the write has no editor.
	Locked(l Lock, anonymous bool, err error) error
	// Missing: the database lacks an object or a privilege.
	Missing(m setuperr.Missing, err error) error
	// Sentinel returns the sentinel error that err matches; nil if err matches none.
	Sentinel(err error) error
	// Log writes an event to a log. times is the number of events that the record stands for, and 0 for the event
	// alone.
	Log(ctx context.Context, l *slog.Logger, e Event, times int64)
}

// Compared is a token with the value that it was compared with.
type Compared struct {
	Table   string
	Token   Token
	Current int64
	Claim   bool // Current is the claim of a row
	Gone    bool // the row of the claim is gone
}

// Unguarded is why a statement can't be guarded. Unknown fields are empty.
type Unguarded struct {
	Table  string
	Column string // a column with a type or content that guards can't compare
	Server string // a server on which guards aren't known to hold
	Reason string // the reason, and what to do instead
	Offset int    // position in the statement, in bytes; -1 if the reason has no position
}

// A Conflict is a failed comparison of a row's serial or claim.
type Conflict struct {
	Table             string
	Expected, Current int64
	Assigned          bool // the statement assigned the number
	Claim             bool // Current is a claim
}

// A Lock is a row's lock, with its owner and its known times.
type Lock struct {
	Table, By     string
	Since, Expiry time.Time
}

// unguardable returns the error of a statement that can't be guarded, without a position in the statement. err is the
// database's error, or nil if nothing was sent.
func (r *registry) unguardable(err error, table, reason string) error {
	return r.factory.Unguardable(Unguarded{Table: table, Reason: reason, Offset: -1}, err)
}

// unguardable is registry.unguardable for a write of the table.
func (t *Table) unguardable(err error, reason string) error {
	return t.factory.Unguardable(Unguarded{Table: t.Name, Reason: reason, Offset: -1}, err)
}

// A Refusal is a sentinel with the reason of one statement, and the base driver's error if the database refused the
// statement.
type Refusal struct {
	Sentinel error
	Reason   string
	Err      error

	Table string // empty if unknown
	Token Token  // the token of the write; zero if the write has no token
}

func (e *Refusal) Error() string        { return fmt.Sprintf("%v: %s", e.Sentinel, e.Reason) }
func (e *Refusal) Is(target error) bool { return target == e.Sentinel }
func (e *Refusal) Unwrap() error        { return e.Err }

// About returns the table and the token that the refusal is about; empty if unknown.
func (e *Refusal) About() (table, token string) {
	if e.Token.Name != "" {
		token = e.Token.String()
	}
	return e.Table, token
}

// A tokenError is an unusable token of the context. If the token is invalid, the write has no valid token, and the
// error is also ErrNoFence.
type tokenError struct {
	table string
	err   error
}

func (e *tokenError) Error() string { return fmt.Sprintf("%v (table %q)", e.err, e.table) }
func (e *tokenError) Unwrap() error { return e.err }

func (e *tokenError) Is(target error) bool {
	return target == ErrNoFence && errors.Is(e.err, ErrInvalid)
}

// About returns the table that the token is for.
func (e *tokenError) About() (table, token string) { return e.table, "" }

// An unknownOutcome is ErrUnknownOutcome with the base driver's error. If database/sql would send the statement again,
// the error doesn't match driver.ErrBadConn.
type unknownOutcome struct {
	err    error
	resent bool
}

func (e *unknownOutcome) Error() string   { return fmt.Sprintf("%v: %v", ErrUnknownOutcome, e.err) }
func (e *unknownOutcome) As(to any) bool  { return errors.As(e.err, to) }
func (e *unknownOutcome) Temporary() bool { return false }

// SafeToRetry makes pgconn.SafeToRetry return false, which programs call before they retry. pgx itself returns true
// even for some errors after it has sent a part of the statement.
func (e *unknownOutcome) SafeToRetry() bool { return false }

// Cause returns the base driver's error, whatever it is.
func (e *unknownOutcome) Cause() error { return e.err }

// Is and As replace Unwrap, which would show database/sql a driver.ErrBadConn: it would send the write again.
func (e *unknownOutcome) Is(target error) bool {
	switch target {
	case ErrUnknownOutcome:
		return true
	case driver.ErrBadConn:
		return !e.resent && errors.Is(e.err, target)
	}
	return errors.Is(e.err, target)
}
