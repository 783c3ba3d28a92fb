package fenced

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlfence/sqlfence"
)

// writesBefore is the number of a holder's writes before a newer token supersedes the holder, so that there are rows to
// overwrite.
const writesBefore = 3

// The other process writes after each pause, waits up to turn for the application's transactions, and rests once the
// application hasn't written for a while.
const (
	pause = 2 * time.Millisecond
	turn  = 200 * time.Millisecond
	while = 100 * time.Millisecond
)

// A holder holds the token for all of the application's writes. A late holder is superseded after some writes, and
// continues to write.
type holder struct {
	mark   *mark
	events *log
	late   bool

	token  sqlfence.Token
	writes atomic.Int64
	wrote  atomic.Int64 // when it did last, as a Unix time in nanoseconds
	mu     sync.Mutex   // held while the other process writes

	superseded atomic.Pointer[superseded] // nil until then
}

// superseded holds the other process's token, and the tables' content when the token was issued.
type superseded struct {
	newer  sqlfence.Token
	before map[string]string
}

var (
	opening sync.Mutex
	holders = map[string]*holder{} // by database: one for the whole process
)

// holderOf returns the process's holder for a database. The first call makes the fence
// columns or the ledger, and issues the token.
func holderOf(dsn string, m *mark, events *log, late bool) (*holder, error) {
	opening.Lock()
	defer opening.Unlock()
	if h := holders[dsn]; h != nil {
		return h, nil
	}
	if err := m.prepare(); err != nil {
		return nil, err
	}
	token, err := m.issue(10 * time.Second)
	if err != nil {
		return nil, err
	}
	h := &holder{mark: m, events: events, late: late, token: token}
	holders[dsn] = h
	return h, nil
}

// tokens is the application's token source.
func (h *holder) tokens(context.Context, []string) ([]sqlfence.Token, error) {
	h.wrote.Store(time.Now().UnixNano())
	if h.late && h.writes.Add(1) == writesBefore && !h.supersede(100*time.Millisecond) {
		go func() {
			for !h.supersede(10*time.Second) && !h.mark.missing() {
				time.Sleep(pause)
			}
		}()
	}
	return []sqlfence.Token{h.token}, nil
}

// supersede lets another process take over, and reports whether it could. Where rows are
// fenced, that process goes on writing all rows.
func (h *holder) supersede(patience time.Duration) bool {
	newer, err := h.mark.issue(patience)
	if err != nil || !h.take(newer, patience) {
		return false
	}
	h.events.line("superseded")
	if h.mark.row {
		go h.goOn(newer)
	}
	return true
}

// goOn writes all rows again and again, as long as there is a database.
func (h *holder) goOn(newer sqlfence.Token) {
	for {
		time.Sleep(pause)
		if time.Now().UnixNano()-h.wrote.Load() < int64(while) && !h.take(newer, turn) && h.mark.missing() {
			return
		}
	}
}

// take stores the tables' content after the other process has written the rows.
func (h *holder) take(newer sqlfence.Token, patience time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mark.row && h.mark.take(newer, patience) != nil {
		return false
	}
	before, err := h.mark.content(newer)
	if err == nil {
		h.superseded.Store(&superseded{newer, before})
	}
	return err == nil
}

// isLate reports whether the holder has been superseded.
func (h *holder) isLate() bool {
	return h.superseded.Load() != nil
}

// compare reports rows that have changed since the holder was superseded.
func (h *holder) compare() {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.superseded.Load()
	now, err := h.mark.content(s.newer)
	switch {
	case err != nil:
		h.events.line("error", err.Error())
	case !maps.Equal(s.before, now):
		for name := range now {
			if now[name] != s.before[name] {
				h.events.line("changed", name)
			}
		}
	default:
		h.events.line("same")
	}
}

// passed notes that a guarded statement was sent after the holder was superseded, and
// succeeded. Under the ledger none may change a row, and on PostgreSQL none may pass.
func (h *holder) passed(query string, rows int) {
	switch {
	case !h.mark.row && (rows > 0 || h.mark.lock):
		h.events.line("late landed", query)
	case rows > 0:
		h.events.line("late passed with rows")
	default:
		h.events.line("late passed without rows", query)
	}
}
