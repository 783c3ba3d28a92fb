package sqlfence

import (
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/dialect"
)

// The exported declarations use these names for what they take from internal packages, because go doc prints a
// declaration as it is written, and users can't look up a name of an internal package.
type (
	options      = core.Options
	registration = core.Table
	dialectID    = dialect.Dialect
)

var (
	errStale          = core.ErrStale
	errNotIssued      = core.ErrNotIssued
	errNoFence        = core.ErrNoFence
	errOutOfScope     = core.ErrOutOfScope
	errUnknownName    = core.ErrUnknownName
	errGone           = core.ErrGone
	errNoSerial       = core.ErrNoSerial
	errUnknownOutcome = core.ErrUnknownOutcome
	errTokenLimit     = core.ErrTokenLimit
	errInvalid        = core.ErrInvalid
)
