package fenced

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"

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

// spend begins work that is ours, and not sqlfence's; done ends it, and notes the time that the
// processor took.
func (l *log) spend() (done func()) {
	runtime.LockOSThread()
	began := threadTime()
	return func() {
		l.line("spent", strconv.FormatInt(threadTime()-began, 10))
		runtime.UnlockOSThread()
	}
}

// threadTime returns the user time of this thread, in nanoseconds.
func threadTime() int64 {
	const thread = 1 // RUSAGE_THREAD of Linux
	var r syscall.Rusage
	if err := syscall.Getrusage(thread, &r); err != nil {
		panic(err) // without it the figures are wrong
	}
	return r.Utime.Nano()
}

// options observes all statements. h is nil where nothing is registered or all is bypassed.
func (l *log) options(h *holder) []sqlfence.Option {
	if os.Getenv("FENCED_QUIET") == "yes" {
		return nil
	}
	return []sqlfence.Option{sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) {
		if e.Kind != sqlfence.Refused {
			l.line(e.Kind.String())
			return
		}
		kind, late := "refused", h != nil && h.isLate()
		if late {
			kind = "late refused"
		}
		l.line(kind, reason(e.Err), e.Query, e.Err.Error())
		if late {
			h.compare()
		}
	}, sqlfence.Refused, sqlfence.Bypassed, sqlfence.RawAccess, sqlfence.Unfenced, sqlfence.Guarded, sqlfence.Passed)}
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
