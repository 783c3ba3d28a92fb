package cli

import "testing"

// The caret stands below the place, whatever is before it.
func TestCaret(t *testing.T) {
	for _, test := range []struct{ before, shown, below string }{
		{"a = 'x', ", "a = 'x', ", "         "},
		{"\ta", "\ta", "\t "},
		{"é", "é", " "},
		{"e\u0301", "e\u0301", " "},             // a combining accent
		{"価格", "価格", "    "},                    // two cells each
		{"ﾌｪﾝｽ", "ﾌｪﾝｽ", "    "},                // half as wide
		{"Ａ", "Ａ", "  "},                        // a wide letter
		{"각", "각", "  "},                        // a syllable of three
		{"💥", "💥", "  "},                        // an emoji
		{"\x1b[31m", `\x1b[31m`, "        "},    // an escape of a terminal's
		{"a\rb", `a\rb`, "    "},                // a carriage return
		{"\u202e", `\u202e`, "      "},          // what turns a text around
		{"\u009b", `\u009b`, "      "},          // another control character
		{"\xff", `\xff`, "    "},                // no character
		{"\ufffd", "\ufffd", " "},               // what stands for one
		{"\u00a0\u3000", "\u00a0\u3000", "   "}, // blanks
		{`\"`, `\"`, "  "},
	} {
		if shown, below := shownLine(test.before); shown != test.shown || below != test.below {
			t.Errorf("%+q: shown as %+q above %q, want %+q above %q", test.before, shown, below, test.shown, test.below)
		}
	}
}
