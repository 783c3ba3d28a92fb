package cli

import (
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// columns returns the width of the terminal; 0 if the output is no terminal, so that lines aren't broken.
func (a *stdout) columns() int {
	f, ok := a.w.(*os.File)
	if !ok {
		return 0
	}
	columns, _, _ := term.GetSize(int(f.Fd())) // 0 with an error
	return columns
}

// folded breaks a text at its blanks into lines of at most this many columns, and indents all lines but the first. It
// doesn't break a word that is longer than a line, so that people can copy the word.
func folded(text string, columns int, indent string) string {
	if columns <= 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for i, word := range strings.Split(text, " ") {
		_, room := shownLine(word)
		switch {
		case i == 0:
		case at+1+room > columns:
			b.WriteString("\n" + indent)
			at = len(indent)
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += room
	}
	return b.String()
}

// excerpt returns the part of a line around the byte offset at that fits into the columns, and the same place's offset
// in this part. An ellipsis marks omitted text.
func excerpt(line string, at, columns int) (string, int) {
	before, behind := line[:at], line[at:]
	room := columns - 2 // for the ellipses
	from, used := len(before), 0
	for from > 0 {
		r, size := utf8.DecodeLastRuneInString(before[:from])
		_, cells := shownRune(r, before[from-size:from])
		if used+cells > room*2/3 {
			break
		}
		from, used = from-size, used+cells
	}
	to := 0
	for to < len(behind) {
		r, size := utf8.DecodeRuneInString(behind[to:])
		_, cells := shownRune(r, behind[to:to+size])
		if used+cells > room {
			break
		}
		to, used = to+size, used+cells
	}
	before, behind = before[from:], behind[:to]
	if from > 0 {
		before = "…" + before
	}
	if at+to < len(line) {
		behind += "…"
	}
	return before + behind, len(before)
}
