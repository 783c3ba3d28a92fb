package fenced

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"

	"github.com/sqlfence/sqlfence"
)

// A log is a file of events, a JSON array of texts a line. Processes share it.
type log struct {
	mu   sync.Mutex
	file *os.File
}

func openLog(path string) (*log, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	return &log{file: file}, nil
}

func (l *log) line(texts ...string) {
	text, err := json.Marshal(texts)
	if err != nil {
		panic(err) // texts can always be written
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.Write(append(text, '\n')); err != nil {
		panic(err) // without it the figures are wrong
	}
}

// option observes all statements. h is nil where nothing is registered or all is bypassed.
func (l *log) option(h *holder) sqlfence.Option {
	return sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) {
		late := h != nil && h.late && h.isLate()
		kind := e.Kind.String()
		if late {
			kind = "late " + kind
		}
		if e.Kind != sqlfence.Refused {
			l.line(kind)
			return
		}
		l.line(kind, reason(e.Err), e.Query, e.Err.Error())
		if late {
			h.compare()
		}
	}, sqlfence.Refused, sqlfence.Bypassed, sqlfence.RawAccess, sqlfence.Unfenced, sqlfence.Guarded, sqlfence.Passed)
}

func reason(err error) string {
	switch {
	case errors.Is(err, sqlfence.ErrStale):
		return "stale"
	case errors.Is(err, sqlfence.ErrNoFence):
		return "no token"
	case errors.Is(err, sqlfence.ErrUnguardable):
		return "unguardable"
	}
	return "other"
}
