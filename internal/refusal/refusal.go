// Package refusal has the names of refusals for other systems: the same in responses of HTTP and gRPC and in metrics.
package refusal

import (
	"errors"

	"github.com/sqlfence/sqlfence"
)

// names lists all refusals. If an error matches several entries, the first entry counts.
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
	{sqlfence.ErrNoFence, "no-fence"}, // last, because a token source's error may match a more specific entry
}

// Name returns the name of a refusal; empty for other errors.
func Name(err error) string {
	for _, n := range names {
		if errors.Is(err, n.is) {
			return n.name
		}
	}
	return ""
}

// Named returns the refusal of a name; nil for other names.
func Named(name string) error {
	for _, n := range names {
		if n.name == name {
			return n.is
		}
	}
	return nil
}
