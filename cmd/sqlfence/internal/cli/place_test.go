package cli

import (
	"strings"
	"testing"
)

// The caret stands below the error's place, whatever characters precede the place.
func TestCaretStandsBelowTheError(t *testing.T) {
	for _, test := range []struct {
		before, shown string
		cells         int
	}{
		{"a = 'x', ", "a = 'x', ", 9},
		{"\ta", `\ta`, 3},
		{"é", "é", 1},
		{"e\u0301", "e\u0301", 1},           // a combining accent
		{"価格", "価格", 4},                     // two cells each
		{"ﾌｪﾝｽ", "ﾌｪﾝｽ", 4},                 // half as wide
		{"Ａ", "Ａ", 2},                       // a wide letter
		{"각", "각", 2},                       // a syllable of three
		{"💥", "💥", 2},                       // an emoji
		{"\x1b[31m", `\x1b[31m`, 8},         // an escape of a terminal's
		{"a\rb", `a\rb`, 4},                 // a carriage return
		{"\u202e", `\u202e`, 6},             // turns the direction of text
		{"\u009b", `\u009b`, 6},             // another control character
		{"\xff", `\xff`, 4},                 // no character
		{"\ufffd", "\ufffd", 1},             // the character for invalid bytes
		{"\u00a0\u3000", "\u00a0\u3000", 3}, // blanks
		{`\"`, `\"`, 2},
	} {
		if shown, cells := shownLine(test.before); shown != test.shown || cells != test.cells {
			t.Errorf("%+q: shown as %+q in %d cells, want %+q in %d", test.before, shown, cells, test.shown, test.cells)
		}
	}
}

// If a line is wider than the terminal, the part around the error's place is shown, with the caret below the place.
func TestCaretOnANarrowTerminal(t *testing.T) {
	const before, behind = "UPDATE books SET title = '価格', price = 30, ", "owner = 'ada', note = 'long' WHERE id = 1"
	for _, test := range []struct {
		query         string
		at, columns   int
		shown, behind string // the whole line, and its part from the caret on
	}{
		{before + behind, len(before), 0, before + behind, behind},
		{before + behind, len(before), 200, before + behind, behind},
		{before + behind, len(before), 40, "…e = '価格', price = 30, owner = 'ada…", "owner = 'ada…"},
		{before + behind, 0, 20, "UPDATE books SET…", "UPDATE books SET…"},
		{before + behind, len(before + behind), 20, "…ERE id = 1", ""},
		{"SELECT 1;\n\t\x1b" + behind, 12, 20, " \\x1bowner = 'ad…", "owner = 'ad…"},
	} {
		x := explanation{Offset: &test.at}
		lines := strings.Split(x.point(test.query, test.columns), "\n")
		shown, caret := strings.TrimPrefix(lines[1], "  "), strings.TrimSuffix(strings.TrimPrefix(lines[2], "  "), "^")
		_, above := shownLine(strings.TrimSuffix(shown, test.behind))
		if shown != test.shown || len(caret) != above {
			t.Errorf("%d columns, %d: %q, caret behind %q; want %q and %d", test.columns, test.at, shown, caret, test.shown, above)
		}
		if _, all := shownLine(lines[1]); test.columns > 0 && all > test.columns {
			t.Errorf("%d columns: %q takes %d", test.columns, lines[1], all)
		}
	}
}

func TestFolded(t *testing.T) {
	for _, test := range []struct {
		text    string
		columns int
		want    string
	}{
		{"the table books isn't there", 0, "the table books isn't there"},
		{"the table books isn't there", 12, "the table\n  books\n  isn't\n  there"},
		{"  the table books", 12, "  the table\n  books"},
		{"a very_long_word_indeed b", 8, "a\n  very_long_word_indeed\n  b"},
		{"価格 価格 価格", 9, "価格 価格\n  価格"},
	} {
		if got := folded(test.text, test.columns, "  "); got != test.want {
			t.Errorf("%q in %d columns: %q, want %q", test.text, test.columns, got, test.want)
		}
	}
}
