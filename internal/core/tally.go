package core

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence/internal/sql/lang"
)

const (
	logInterval = time.Minute // time between two log records about one statement
	mostTallied = 1000        // maximum number of statements that are counted separately
	mostOfText  = 1 << 10     // bytes of a statement's text that are stored
)

// A tally counts the statements that Observe lets through, so that the log has a record for each different statement,
// not for each write. It forgets a statement that was not sent for a minute.
type tally struct {
	mu     sync.Mutex
	counts map[tallied]*count
}

// A tallied is the key of the writes that are counted together.
type tallied struct {
	text     string // the statement's fingerprint: ? replaces values
	sentinel error
}

// A count is the number of writes since the last log record.
type count struct {
	times int64
	last  Event
}

// logObserved logs the first write of a statement that Observe mode lets through, and then once a minute the number of
// further writes.
func (s *Settings) logObserved(ctx context.Context, logger *slog.Logger, e Event) {
	t := &s.tally
	of := tallied{lang.Fingerprint(e.Dialect, e.Query), s.factory.Sentinel(e.Err)}
	if len(of.text) > mostOfText {
		of.text = strings.ToValidUTF8(of.text[:mostOfText], "") + "…"
	}
	t.mu.Lock()
	if t.counts == nil {
		t.counts = make(map[tallied]*count)
	}
	c := t.counts[of]
	if c == nil && len(t.counts) >= mostTallied {
		of = tallied{text: "(other statements)"}
		c = t.counts[of]
	}
	first := c == nil
	if first {
		t.counts[of] = new(count)
		if len(t.counts) == 1 {
			time.AfterFunc(logInterval, func() { s.logTally(logger) })
		}
	} else {
		e.Query, e.Sent, e.Tokens = of.text, "", nil
		c.times, c.last = c.times+1, e
	}
	t.mu.Unlock()
	if first {
		s.factory.Log(ctx, logger, e, 0)
	}
}

// logTally logs the writes since the last record of each statement, and forgets statements that weren't sent.
func (s *Settings) logTally(logger *slog.Logger) {
	t := &s.tally
	var lines []count
	t.mu.Lock()
	for of, c := range t.counts {
		if c.times == 0 {
			delete(t.counts, of)
			continue
		}
		lines = append(lines, *c)
		*c = count{}
	}
	if len(t.counts) > 0 {
		time.AfterFunc(logInterval, func() { s.logTally(logger) })
	}
	t.mu.Unlock()
	slices.SortFunc(lines, func(a, b count) int { return strings.Compare(a.last.Query, b.last.Query) })
	for _, c := range lines {
		s.factory.Log(context.Background(), logger, c.last, c.times)
	}
}
