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

// The sentinels of the public package, which says what they mean.
var (
	ErrStale          = lost.ErrStale
	ErrNotIssued      = errors.New("sqlfence: fencing token was not issued here")
	ErrNoFence        = errors.New("sqlfence: no fencing token")
	ErrOutOfScope     = errors.New("sqlfence: row out of the token's scope")
	ErrUnknownName    = errors.New("sqlfence: name unknown to the ledger")
	ErrGone           = errors.New("sqlfence: row is gone")
	ErrNoSerial       = errors.New("sqlfence: no serial")
	ErrUnknownOutcome = errors.New("sqlfence: no answer, the write may have been applied")
	ErrTokenLimit     = errors.New("sqlfence: token limit reached")
	ErrInvalid        = errors.New("sqlfence: invalid argument")
)

// An ErrorFactory turns the core's facts into the error types and log records of the public package. err is the base
// driver's error, or nil for what was not sent.
type ErrorFactory interface {
	// Stale: the row or the ledger has a newer value than the token; a claim has another value, or its row is gone.
	Stale(c Compared, err error) error
	// NotIssued: the ledger's newest value is below the token's; or the claim of the row is.
	NotIssued(c Compared, err error) error
	// Unguardable: the statement can't be guarded.
	Unguardable(u Unguarded, err error) error
	// Conflict: the row has another serial than the one that was expected, or a number was assigned that doesn't raise
	// the row's.
	Conflict(c Conflict, err error) error
	// Locked: another user holds the row's lock. anonymous: the write has no editor.
	Locked(l Lock, anonymous bool, err error) error
	// Missing: the database lacks something.
	Missing(m setuperr.Missing, err error) error
	// Sentinel returns which of the sentinels an error is; nil for none.
	Sentinel(err error) error
	// Log writes an event to a log; times is how many it stands for, and 0 for itself.
	Log(ctx context.Context, l *slog.Logger, e Event, times int64)
}

// Compared is a token with what it was compared with.
type Compared struct {
	Table   string
	Token   Token
	Current int64
	Claim   bool // Current is the claim of a row
	Gone    bool // the row of the claim is gone
}

// Unguarded is why a statement can't be guarded. What isn't known is empty.
type Unguarded struct {
	Table  string
	Column string // that guards can't compare, for its type or content
	Server string // on which guards aren't known to hold
	Reason string // and what to do instead
	Offset int    // in the statement, in bytes; -1 for no place in it
}

// A Conflict is what a serial, or the claim of a row, was compared with.
type Conflict struct {
	Table             string
	Expected, Current int64
	Assigned          bool // by the statement
	Claim             bool // the number is a claim's
}

// A Lock is that of a row, with the holder and the times that are known.
type Lock struct {
	Table, By     string
	Since, Expiry time.Time
}

// unguardable returns the error of a statement that can't be guarded, for no single place in it. err is the database's
// error, or nil if nothing was sent.
func (r *registry) unguardable(err error, table, reason string) error {
	return r.factory.Unguardable(Unguarded{Table: table, Reason: reason, Offset: -1}, err)
}

// unguardable is registry.unguardable for a write of the table.
func (t *Table) unguardable(err error, reason string) error {
	return t.factory.Unguardable(Unguarded{Table: t.Name, Reason: reason, Offset: -1}, err)
}

// A Refusal is a sentinel with the reason of one statement, and the base driver's
// error where it was the database that refused.
type Refusal struct {
	Sentinel error
	Reason   string
	Err      error

	Table string // empty if unknown
	Token Token  // of the write; zero if it has none
}

func (e *Refusal) Error() string        { return fmt.Sprintf("%v: %s", e.Sentinel, e.Reason) }
func (e *Refusal) Is(target error) bool { return target == e.Sentinel }
func (e *Refusal) Unwrap() error        { return e.Err }

// About returns the table and the token that the refusal is about; empty where that is unknown.
func (e *Refusal) About() (table, token string) {
	if e.Token.Name != "" {
		token = e.Token.String()
	}
	return e.Table, token
}

// A tokenError is a token of the context that can't be used. Where that is ErrInvalid
// the write has no token, so it is ErrNoFence, too.
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

// An unknownOutcome is ErrUnknownOutcome with the base driver's error. If it was about
// something that database/sql would send again on driver.ErrBadConn, that isn't found
// in it.
type unknownOutcome struct {
	err    error
	resent bool
}

func (e *unknownOutcome) Error() string   { return fmt.Sprintf("%v: %v", ErrUnknownOutcome, e.err) }
func (e *unknownOutcome) As(to any) bool  { return errors.As(e.err, to) }
func (e *unknownOutcome) Temporary() bool { return false }

// SafeToRetry is for pgconn.SafeToRetry, on which programs of pgx's send something again: pgx calls some errors so that
// came behind what was sent.
func (e *unknownOutcome) SafeToRetry() bool { return false }

// Cause returns the base driver's error, whatever it is.
func (e *unknownOutcome) Cause() error { return e.err }

// Is and As stand for Unwrap, which would show database/sql all of the error.
func (e *unknownOutcome) Is(target error) bool {
	switch target {
	case ErrUnknownOutcome:
		return true
	case driver.ErrBadConn:
		return !e.resent && errors.Is(e.err, target)
	}
	return errors.Is(e.err, target)
}
