package sqlfence

import (
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/dialect"
)

// Exported declarations use these aliases of internal types, because go doc prints a declaration as written, and users
// can't look up the name of an internal package.
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
	errLocked         = core.ErrLocked
	errUnknownOutcome = core.ErrUnknownOutcome
	errTokenLimit     = core.ErrTokenLimit
	errInvalid        = core.ErrInvalid
)
