// Package overtaking says when the next statement of a name may overtake the one under way.
// Statements of a name are sent one after the other, until one of them is late: it may have gone
// to a server that can't be reached. Or it waits there for somebody's transaction, and holds a
// connection, so that only a few may be late at once.
package overtaking

import (
	"database/sql"
	"time"
)

// Patience is how long a statement may take before it is late.
const Patience = 100 * time.Millisecond

// most is how many statements of a name may be late at once.
const most = 3

// After returns how long a statement may take before it is late, beside others that are
// late already: twice as long for each, so that a slow database isn't flooded.
func After(others int) time.Duration { return Patience << min(others, most) }

// Most returns how many statements of one name may be late at once. In a pool of limited
// size those of one name leave three quarters to others, among them whoever they
// wait for. A nil db stands for a pool without a limit.
func Most(db *sql.DB) int {
	if db == nil {
		return most
	}
	if size := db.Stats().MaxOpenConnections; size > 0 {
		return min(most, size/4)
	}
	return most
}
