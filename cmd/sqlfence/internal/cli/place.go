package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// point sets x.Line and x.Column from x.Offset, and returns this line of the query with a caret below the place. It
// cuts the line to fit into the columns of a terminal, unless columns is 0.
func (x *explanation) point(query string, columns int) string {
	offset := *x.Offset
	if offset < 0 || offset > len(query) {
		return ""
	}
	start := strings.LastIndexByte(query[:offset], '\n') + 1
	line, _, _ := strings.Cut(query[start:], "\n")
	x.Line = strings.Count(query[:start], "\n") + 1
	x.Column = utf8.RuneCountInString(query[start:offset]) + 1
	const indent = "  "
	// A tab takes as much room as the terminal likes.
	line = strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", " ")
	at := min(offset-start, len(line))
	if columns > 0 {
		line, at = excerpt(line, at, columns-len(indent))
	}
	shown, _ := shownLine(line)
	_, before := shownLine(line[:at])
	return fmt.Sprintf("%d:%d\n%s%s\n%s%*s\n", x.Line, x.Column, indent, shown, indent, before+1, "^")
}

// shownLine returns a line in a form that a terminal can show, and its width in cells. It writes invisible characters,
// such as control characters, as the escapes of a Go string.
func shownLine(line string) (shown string, cells int) {
	var b strings.Builder
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRuneInString(line[i:])
		text, n := shownRune(r, line[i:i+size])
		b.WriteString(text)
		cells += n
		i += size
	}
	return b.String(), cells
}

// shownRune returns a character in a form that a terminal can show, and its width in cells. text is the character as
// written.
func shownRune(r rune, text string) (string, int) {
	if r == utf8.RuneError && len(text) == 1 || !unicode.IsGraphic(r) {
		quoted := strconv.QuoteToASCII(text)
		return quoted[1 : len(quoted)-1], len(quoted) - 2
	}
	return text, cells(r)
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
