package harness

import (
	"slices"
	"strings"
)

// JoinLines joins the lines of a Markdown table that differ only in their first cell, so that the page shows the
// differences.
func JoinLines(table string) string {
	var titles, cells []string
	for line := range strings.Lines(table) {
		title, rest, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		if i := slices.Index(cells, rest); i >= 0 {
			titles[i] += "; " + title
			continue
		}
		titles, cells = append(titles, title), append(cells, rest)
	}
	var b strings.Builder
	for i := range titles {
		b.WriteString("| " + titles[i] + " |" + cells[i])
	}
	return b.String()
}
