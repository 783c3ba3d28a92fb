package render

import (
	"strings"
	"testing"
)

func TestPlainKeys(t *testing.T) {
	for key, want := range map[string]string{
		"": "", "a": "a", " a ": "a", "7": "7", "007": "7", "+7": "7", " -07 ": "-7", "7.0": "7", ".7e1": "7", "70e-1": "7", "7.5": "7.5", "-0": "0",
		"1_000": "1000", "0x2A": "42", "-0b11": "-3", "0o17": "15", "0x": "0x", "0b2": "0b2", "7x": "7x", "7.5.1": "7.5.1", "e1": "e1", "1e400": "1e400",
		"9007199254740993.0": "9007199254740993", "5.00000000000000000001": "5", strings.Repeat("9", 70): strings.Repeat("9", 70),
		"AAAAAAAABBBB1CCC8DDDEEEEEEEEEEEE":       "aaaaaaaa-bbbb-1ccc-8ddd-eeeeeeeeeeee",
		"{aaaaaaaa-BBBB-1ccc-8ddd-eeeeeeeeeeee}": "aaaaaaaa-bbbb-1ccc-8ddd-eeeeeeeeeeee",
		"aaaaaaaa-bbbb-1ccc-8ddd-eeeeeeeeeee":    "aaaaaaaa-bbbb-1ccc-8ddd-eeeeeeeeeee",
	} {
		if got := plainKey(key); got != want {
			t.Errorf("%q is %q, want %q", key, got, want)
		}
	}
}
