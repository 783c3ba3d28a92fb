package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
)

// A page draws a watch's results on a terminal, and redraws them in place.
type page struct {
	*app
	columns, rows int
	interval      time.Duration
}

// screen returns the size of the terminal for a page; 0 if the standard output is no terminal, or a terminal on which
// no page can be drawn.
func (a *app) screen() (columns, rows int) {
	kind := os.Getenv("TERM")
	if a.json || runtime.GOOS == "windows" || kind == "" || kind == "dumb" {
		return 0, 0
	}
	return a.out.size()
}

// The sequences that a terminal draws by. Source: ECMA-48
const (
	home      = "\x1b[H" // to the first place
	clearLine = "\x1b[K" // to the end of the line
	clearRest = "\x1b[J" // to the end of the screen
)

func (p *page) show(found look) error {
	if columns, rows := p.screen(); rows > 0 { // it may have changed
		p.columns, p.rows = columns, rows
	}
	lines := strings.Split(strings.TrimSuffix(p.text(found), "\n"), "\n")
	if p.rows > 0 && len(lines) >= p.rows {
		left := len(lines) - p.rows + 2
		lines = append(lines[:p.rows-2], fmt.Sprintf("… and %d lines more: make the window higher, or name one", left))
	}
	text := home
	for _, line := range lines {
		shown, _ := excerpt(line, 0, p.columns)
		text += shown + clearLine + "\r\n"
	}
	_, err := p.out.Write([]byte(text + clearRest))
	return err
}

func (p *page) text(found look) string {
	var b bytes.Buffer
	section := func(names []string, rows [][]string) {
		if len(rows) > 0 {
			b.WriteString("\n")
			writeTable(&b, names, rows)
		}
	}
	fmt.Fprintf(&b, "sqlfence watch  %s  every %v, ^C ends it\n", moment(time.Now()), p.interval)
	var names, counts [][]string
	for _, w := range found.names {
		holder := w.Holder
		if w.Lease == "none" {
			holder = "no lease"
		}
		names = append(names, []string{w.Name, strconv.FormatInt(w.Value, 10), holder, w.AcquiredAt})
	}
	section([]string{"NAME", "TOKEN", "HELD BY", "SINCE"}, names)
	for _, w := range found.waits {
		b.WriteString("\n" + waitLines(w))
	}
	for _, c := range inOrder(found.counts) {
		counts = append(counts, []string{c.What, cmp.Or(c.Table, c.Resource), c.Statement, c.Error,
			strconv.FormatInt(found.counts[c], 10), c.Program})
	}
	section([]string{"COUNTED", "TABLE OR LEASE", "STATEMENT", "ERROR", "TIMES", "PROGRAM"}, counts)
	for _, text := range found.unshown {
		fmt.Fprintf(&b, "\n%s\n", visible(text))
	}
	return b.String()
}

// waitLines describes a session that waits for another session, in several lines, so that a narrow terminal shows the
// blocking session.
func waitLines(w database.Wait) string {
	text := fmt.Sprintf("%s: a session waits since %s\n  waiting  %s\n", visible(w.Name), w.Since, visible(w.Who))
	if w.For != "" {
		text += fmt.Sprintf("  for      %s\n  which is %s, since %s\n", visible(w.For), visible(w.Does),
			visible(w.Began))
	}
	return text
}
