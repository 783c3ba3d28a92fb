//go:build linux

package ha_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A trail records the tokens that clients have received, and the writes that clients have sent.
type trail struct {
	mu     sync.Mutex
	issued []issued
	sent   []sent

	given  map[string][]int64 // by name: the tokens in the order in which clients received them
	newest map[string]int64   // by name: the highest token
	marks  map[string]int64   // by row: the highest token of an acknowledged write
	errs   map[string]int     // by text: the number of errors during failovers
}

type issued struct {
	name         string
	value        int64
	began, ended time.Time
}

// A sent write. stale is set if a newer token was known when the write was sent.
type sent struct {
	client  string
	write   string
	table   string
	token   int64
	stale   bool
	outcome outcome
	ended   time.Time
}

type outcome int

const (
	unknown   outcome = iota
	landed            // acknowledged
	refused           // with ErrStale
	notIssued         // with ErrNotIssued
	failed            // the error excludes that the write has landed
)

func newTrail() *trail {
	return &trail{given: make(map[string][]int64), newest: make(map[string]int64), marks: make(map[string]int64),
		errs: make(map[string]int)}
}

func rowName(table string, row int) string { return fmt.Sprint(table, "#", row) }

func (tr *trail) issue(name string, value int64, began time.Time) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.issued = append(tr.issued, issued{name, value, began, time.Now()})
	tr.given[name] = append(tr.given[name], value)
	tr.newest[name] = max(tr.newest[name], value)
}

func (tr *trail) send(s sent, row int, err error) {
	s.ended = time.Now()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.sent = append(tr.sent, s)
	if s.outcome == landed {
		name := rowName(s.table, row)
		tr.marks[name] = max(tr.marks[name], s.token)
	}
	if s.outcome == unknown || s.outcome == failed {
		tr.errs[kindOf(err)]++
	}
}

func (tr *trail) fail(err error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.errs[kindOf(err)]++
}

// kindOf returns an error's first line with its numbers replaced.
func kindOf(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return numbers.ReplaceAllString(line, "N")
}

var numbers = regexp.MustCompile("[0-9]+")

// stale returns a token for the row that is older than the newest known token, or 0 if there is no such token.
func (tr *trail) stale(t *table, row int) int64 {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	name := t.token(row)
	newest := tr.marks[rowName(t.name, row)]
	if t.ledger {
		newest = tr.newest[name]
	}
	given := tr.given[name]
	given = given[max(0, len(given)-20):]
	older := slices.DeleteFunc(slices.Clone(given), func(value int64) bool { return value >= newest })
	if len(older) == 0 {
		return 0
	}
	return older[rand.IntN(len(older))]
}

// worked reports whether, after since, each table has a write that landed under a token of the timeline or a later one,
// and each guarded table has a stale write that was refused.
func (tr *trail) worked(since time.Time, timeline int64) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	wrote, refusedOne := make(map[string]bool), make(map[string]bool)
	for i := len(tr.sent) - 1; i >= 0 && tr.sent[i].ended.After(since); i-- {
		s := &tr.sent[i]
		switch {
		case s.outcome == landed && !s.stale && timelineOf(s.token) >= timeline:
			wrote[s.table] = true
		case s.outcome == refused && s.stale:
			refusedOne[s.table] = true
		}
	}
	for _, t := range tables {
		if !wrote[t.name] || t.rules != nil && !refusedOne[t.name] {
			return false
		}
	}
	return true
}

// decided returns the number of clients with at least one write that landed or was refused.
func (tr *trail) decided() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	clients := make(map[string]bool)
	for _, s := range tr.sent {
		if s.outcome == landed || s.outcome == refused {
			clients[s.client] = true
		}
	}
	return len(clients)
}

// gap returns the longest interval between two acknowledged guarded writes that overlaps the time between from and to.
func (tr *trail) gap(from, to time.Time) (longest time.Duration) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var last time.Time
	for _, s := range tr.sent { // sorted by end time
		if s.outcome != landed || s.table == "plain" {
			continue
		}
		if !last.IsZero() && s.ended.After(from) && last.Before(to) {
			longest = max(longest, s.ended.Sub(last))
		}
		last = s.ended
	}
	return longest
}

// count returns the number of issued tokens.
func (tr *trail) count() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.issued)
}

// timelineOf returns the timeline of the server that issued the token.
func timelineOf(value int64) int64 { return value/10_000_000_000 + 1 }
