// Package refusal has the names of refusals for other systems: the same in answers of HTTP and gRPC and in metrics.
package refusal

import (
	"errors"

	"github.com/sqlfence/sqlfence"
)

// names are a bounded list; of an error that is several of them the first one counts.
var names = []struct {
	is   error
	name string
}{
	{sqlfence.ErrUnknownOutcome, "unknown-outcome"},
	{sqlfence.ErrStale, "stale"},
	{sqlfence.ErrNotIssued, "not-issued"},
	{sqlfence.ErrUnknownName, "unknown-name"},
	{sqlfence.ErrOutOfScope, "out-of-scope"},
	{sqlfence.ErrUnguardable, "unguardable"},
	{sqlfence.ErrNoSerial, "no-serial"},
	{sqlfence.ErrConflict, "conflict"},
	{sqlfence.ErrGone, "gone"},
	{sqlfence.ErrLocked, "locked"},
	{sqlfence.ErrTokenLimit, "token-limit"},
	{sqlfence.ErrNotSetUp, "not-set-up"},
	{sqlfence.ErrInvalid, "invalid"},
	{sqlfence.ErrStandby, "standby"},
	{sqlfence.ErrNoFence, "no-fence"}, // also where the error of a source says more
}

// Name returns the name of a refusal; empty for another error.
func Name(err error) string {
	for _, n := range names {
		if errors.Is(err, n.is) {
			return n.name
		}
	}
	return ""
}

// Named returns the refusal of a name; nil for another name.
func Named(name string) error {
	for _, n := range names {
		if n.name == name {
			return n.is
		}
	}
	return nil
}
