package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// stdout is the standard output. It keeps the first error, so that commands needn't check each write.
type stdout struct {
	w   io.Writer
	err error
}

func (a *stdout) Write(text []byte) (int, error) {
	n, err := a.w.Write(text)
	if a.err == nil {
		a.err = err
	}
	return n, err
}

// write writes an answer: as JSON, or by the function for people.
func (a *app) write(answer any, people func()) error {
	if !a.json {
		people()
		return nil
	}
	encoder := json.NewEncoder(a.out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(answer)
}

func (a *app) table(names []string, rows [][]string) {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{names}, rows...) {
		for i, cell := range row {
			row[i] = visible(cell)
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush()
}

// visible returns a table cell without characters that would break the layout.
func visible(cell string) string {
	if cell == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if isHidden(r) {
			return '\ufffd'
		}
		return r
	}, cell)
}

// quoted returns a text unchanged, or quoted as a Go string if a terminal would interpret a character instead of
// showing it.
func quoted(text string) string {
	if strings.ContainsFunc(text, isHidden) {
		return strconv.QuoteToASCII(text)
	}
	return text
}

// isHidden reports whether a terminal interprets a character, or reorders the neighbouring characters because of it.
func isHidden(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// moment is a time as all commands write it, in whole milliseconds.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
