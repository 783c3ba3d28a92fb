package fenceotel

import (
	"errors"

	"github.com/sqlfence/sqlfence"
)

// errorTypes are the values of error.type, a bounded list; of an error that is several of them the first one.
var errorTypes = []struct {
	is   error
	name string
}{
	{sqlfence.ErrStale, "stale"}, {sqlfence.ErrNotIssued, "not_issued"}, {sqlfence.ErrUnknownName, "unknown_name"},
	{sqlfence.ErrOutOfScope, "out_of_scope"}, {sqlfence.ErrUnguardable, "unguardable"}, {sqlfence.ErrNoSerial, "no_serial"},
	{sqlfence.ErrConflict, "conflict"}, {sqlfence.ErrGone, "gone"}, {sqlfence.ErrLocked, "locked"},
	{sqlfence.ErrTokenLimit, "token_limit"}, {sqlfence.ErrNotSetUp, "not_set_up"}, {sqlfence.ErrInvalid, "invalid"},
	{sqlfence.ErrNoFence, "no_fence"},
}

func errorType(err error) string {
	for _, t := range errorTypes {
		if errors.Is(err, t.is) {
			return t.name
		}
	}
	return "_OTHER" // as the conventions call what isn't on the list
}
