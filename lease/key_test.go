package lease

import (
	"errors"
	"strings"
	"testing"
)

func TestNormalizeKey(t *testing.T) {
	for _, test := range []struct{ name, key, want string }{
		{"plain", "books/42", "books/42"},
		{"composed", "caf\u00e9", "caf\u00e9"},
		{"decomposed", "cafe\u0301", "caf\u00e9"},
		{"longest", strings.Repeat("k", 512), strings.Repeat("k", 512)},
		{"shorter once normalized", strings.Repeat("e\u0301", 256), strings.Repeat("\u00e9", 256)},
		{"empty", "", ""},
		{"too long", strings.Repeat("k", 513), ""},
		{"longer once normalized", strings.Repeat("\u0958", 171), ""}, // a letter and a mark
		{"NUL", "a\x00b", ""},
		{"not UTF-8", "a\xff", ""},
		{"the ledger's own", "sqlfence:floor", ""},
	} {
		got, err := NormalizeKey(test.key)
		if got != test.want || errors.Is(err, ErrInvalid) != (test.want == "") {
			t.Errorf("%s: %q, %v; want %q", test.name, got, err, test.want)
		}
	}
}

func TestLockID(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		id := newLockID()
		if err := validateLockID(id); err != nil || seen[id] {
			t.Fatalf("%q: %v, seen %v", id, err, seen[id])
		}
		seen[id] = true
	}
	for _, id := range []string{"", "short", strings.Repeat("A", 21), strings.Repeat("A", 23),
		strings.Repeat("A", 21) + "=", strings.Repeat("A", 21) + "+", strings.Repeat("A", 20) + "\u00e9"} {
		if err := validateLockID(id); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", id, err)
		}
	}
}
