package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// point sets the line and the column of the place, and returns the line with a caret below.
func (x *explanation) point(query string) string {
	offset := *x.Offset
	if offset < 0 || offset > len(query) {
		return ""
	}
	start := strings.LastIndexByte(query[:offset], '\n') + 1
	line, _, _ := strings.Cut(query[start:], "\n")
	x.Line = strings.Count(query[:start], "\n") + 1
	x.Column = utf8.RuneCountInString(query[start:offset]) + 1
	shown, _ := shownLine(strings.TrimSuffix(line, "\r"))
	_, below := shownLine(query[start:offset])
	return fmt.Sprintf("%d:%d\n  %s\n  %s^\n", x.Line, x.Column, shown, below)
}

// shownLine returns a line as a terminal can show it, and blanks that take as much room. What isn't to be seen,
// such as a control character, is written as in a string of Go's, but for a tab, which is itself in both.
func shownLine(line string) (shown, below string) {
	var s, b strings.Builder
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRuneInString(line[i:])
		text, cells := line[i:i+size], cells(r)
		switch {
		case r == '\t':
			b.WriteByte('\t')
			cells = 0
		case r == utf8.RuneError && size == 1, !unicode.IsGraphic(r):
			quoted := strconv.QuoteToASCII(text)
			text = quoted[1 : len(quoted)-1]
			cells = len(text)
		}
		s.WriteString(text)
		b.WriteString(strings.Repeat(" ", cells))
		i += size
	}
	return s.String(), b.String()
}

// cells returns how many cells of a terminal a character takes.
func cells(r rune) int {
	const vowels, beyond = 0x1160, 0x1200 // of Hangul, which are joined to the consonant before
	switch kind := width.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me), r >= vowels && r < beyond:
		return 0
	case kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
		return 2
	}
	return 1
}
