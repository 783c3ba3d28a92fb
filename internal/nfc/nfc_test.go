package nfc

import "testing"

func TestString(t *testing.T) {
	for _, test := range []struct{ name, s, want string }{
		{"empty", "", ""},
		{"ASCII", "books/42", "books/42"},
		{"composed", "caf\u00e9", "caf\u00e9"},
		{"decomposed", "cafe\u0301", "caf\u00e9"},
		{"longer once normalised", "\u0958", "\u0915\u093c"},
		{"a mark after the slash of a key", "books/\u0338x", "books/\u0338x"},
		{"not UTF-8", "a\xff", "a\xff"},
	} {
		if got := String(test.s); got != test.want {
			t.Errorf("%s: String(%q) = %q, want %q", test.name, test.s, got, test.want)
		}
		if got := Is(test.s); got != (test.s == test.want) {
			t.Errorf("%s: Is(%q) = %v", test.name, test.s, got)
		}
	}
}

func TestASCIICostsNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { String("books/42"); Is("books/42") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkASCII(b *testing.B) {
	for b.Loop() {
		String("books/42")
	}
}
