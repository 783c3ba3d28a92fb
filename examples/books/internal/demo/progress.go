package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress returns what shows a bar on a terminal and nothing elsewhere, until ctx ends.
func progress(ctx context.Context, out *os.File) func(total int, what string) (step func()) {
	if !term.IsTerminal(int(out.Fd())) {
		return func(int, string) func() { return func() {} }
	}
	return func(total int, what string) func() {
		b := &bar{w: out, total: total, what: what, every: 50 * time.Millisecond}
		context.AfterFunc(ctx, b.close)
		return b.step
	}
}

// A bar shows how much of the work is done. It is safe for concurrent use.
type bar struct {
	w     io.Writer
	total int
	what  string
	every time.Duration // how long a drawing stays at least

	mu     sync.Mutex
	done   int
	drawn  time.Time
	closed bool
}

const barWidth = 40

// eraseLine also removes text that the terminal echoed after the bar, such as ^C.
const eraseLine = "\r\x1b[2K"

// step counts a finished client. The last step erases the bar.
func (b *bar) step() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
	switch {
	case b.closed:
	case b.done >= b.total:
		b.erase()
	case time.Since(b.drawn) >= b.every:
		b.drawn = time.Now()
		full := barWidth * b.done / b.total
		fmt.Fprintf(b.w, "%s%s |%s%s| %d of %d", eraseLine, b.what, strings.Repeat("#", full), strings.Repeat(" ", barWidth-full), b.done, b.total)
	}
}

// close erases the bar, and nothing draws it again.
func (b *bar) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
}

func (b *bar) erase() {
	if !b.closed {
		b.closed = true
		fmt.Fprint(b.w, eraseLine)
	}
}
