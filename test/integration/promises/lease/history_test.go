package lease_test

import (
	"database/sql"
	"fmt"
	"testing"
)

// A leaseEvent is a row of the history: a version of a lease's row, or a write to a registered table. Times are in µs,
// by the database's clock.
type leaseEvent struct {
	what, key, lockID string // lockID is empty for a free lease and for a write
	token, at, ends   int64
}

// A leaseHistory is a list of events, in order for each key.
type leaseHistory struct {
	events []leaseEvent

	grants, takeovers, writes int // counted by check
}

func readHistory(t *testing.T, db *sql.DB) *leaseHistory {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT what, "key", COALESCE(lock_id, ''), token, at, ends FROM history ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	h := new(leaseHistory)
	for rows.Next() {
		var e leaseEvent
		if err := rows.Scan(&e.what, &e.key, &e.lockID, &e.token, &e.at, &e.ends); err != nil {
			t.Fatal(err)
		}
		h.events = append(h.events, e)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return h
}

// check returns the violations in the history.
func (h *leaseHistory) check() (wrong []string) {
	last := make(map[string]leaseEvent)  // the lease's last event
	newest := make(map[string]int64)     // token granted, by key
	written := make(map[[2]string]int64) // token written, by table and key
	for _, e := range h.events {
		before := last[e.key]
		switch {
		case e.what != "lease":
			h.writes++
			if e.token < newest[e.key] && e.what == "notes" { // the ledger's guard
				wrong = append(wrong, fmt.Sprintf("%s: a write with token %d after %d was granted", e.key, e.token, newest[e.key]))
			}
			if row := [2]string{e.what, e.key}; e.token < written[row] {
				wrong = append(wrong, fmt.Sprintf("%s: a write with token %d over one with %d", e.key, e.token, written[row]))
			} else {
				written[row] = e.token
			}
			continue
		case e.lockID != "" && e.lockID != before.lockID:
			h.grants++
			if before.lockID != "" {
				h.takeovers++
				if before.ends > e.at {
					wrong = append(wrong, fmt.Sprintf("%s: token %d was granted %d µs before the end of the lease with token %d", e.key, e.token, before.ends-e.at, before.token))
				}
			}
			if e.token <= newest[e.key] {
				wrong = append(wrong, fmt.Sprintf("%s: token %d was granted after %d", e.key, e.token, newest[e.key]))
			}
			newest[e.key] = max(newest[e.key], e.token)
		case e.lockID != "" && e.token != before.token:
			wrong = append(wrong, fmt.Sprintf("%s: the token of a lease went from %d to %d", e.key, before.token, e.token))
		}
		last[e.key] = e
	}
	return wrong
}

// TestLeaseHistory checks that the check of histories detects each violation.
func TestLeaseHistory(t *testing.T) {
	a := leaseEvent{"lease", "k", "a", 1, 0, 100}
	b := leaseEvent{"lease", "k", "b", 2, 100, 200}
	released := leaseEvent{"lease", "k", "", 1, 50, 50}
	row := func(token int64) leaseEvent { return leaseEvent{what: "accounts", key: "k", token: token} }
	note := func(token int64) leaseEvent { return leaseEvent{what: "notes", key: "k", token: token} }
	early, same, longer := b, b, a
	early.at, same.token, longer.ends = 99, 1, 150
	for _, test := range []struct {
		name   string
		events []leaseEvent
		wrong  int
	}{
		{"expired", []leaseEvent{a, row(1), note(1), b, row(1), row(2), note(2)}, 0},
		{"released", []leaseEvent{a, released, early}, 0},
		{"two at once", []leaseEvent{a, early}, 1},
		{"extended", []leaseEvent{a, longer, b}, 1},
		{"same token", []leaseEvent{a, same}, 1},
		{"stale row", []leaseEvent{a, b, row(2), row(1)}, 1},
		{"stale by the ledger", []leaseEvent{a, b, note(1)}, 1},
	} {
		h := leaseHistory{events: test.events}
		if wrong := h.check(); len(wrong) != test.wrong {
			t.Errorf("%s: %q, want %d", test.name, wrong, test.wrong)
		}
	}
}
