package sqlfence

import "testing"

type labelled int64

func (labelled) String() string { return "42" }

func TestTextOfKey(t *testing.T) {
	three := 3
	for _, tt := range []struct {
		value any
		want  string
		ok    bool
	}{
		{int64(7), "7", true},
		{uint8(7), "7", true},
		{&three, "3", true},
		{labelled(42), "42", true},
		{labelled(1), "", false}, // by the column's type the one or the other is stored
		{"a", "a", true},
		{[]byte("a"), "a", true},
		{[16]byte{15: 1}, "00000000-0000-0000-0000-000000000001", true},
		{nil, "", false},
		{1.5, "", false},
	} {
		if got, _, ok := textOf(tt.value, sqlite{}); got != tt.want || ok != tt.ok {
			t.Errorf("textOf(%v) = %q, %v; want %q, %v", tt.value, got, ok, tt.want, tt.ok)
		}
	}
}

func TestTextOfBytesInPostgres(t *testing.T) {
	value := []byte("42")
	for _, v := range []any{value, &value} {
		if got, _, ok := textOf(v, postgres{}); ok {
			t.Errorf("textOf(%v) = %q, which may be stored as \\x3432", v, got)
		}
	}
	if got, _, ok := textOf("42", postgres{}); got != "42" || !ok {
		t.Errorf("textOf(42) = %q, %v", got, ok)
	}
}

func TestCanonicalKey(t *testing.T) {
	var books table
	for key, ok := range map[string]bool{
		"7": true, "-7": true, "0": true, "abc": true, "7-habits": true, "2026-11": true,
		"07": false, "+7": false, " 7": false, "7 ": false, "7.0": false, "7e0": false, "-0": false,
		"6ba7b810-9dad-11d1-80b4-00c04fd430c8":    true,
		"6BA7B810-9dad-11d1-80b4-00c04fd430c8":    false,
		"{6ba7b810-9dad-11d1-80b4-00c04fd430c8}":  false,
		"d41d8cd98f00b204e9800998ecf8427e":        false,
		"6ba7-b810-9dad-11d1-80b4-00c0-4fd4-30c8": false,
		"6ba7b8109dad11d180b400c04fd430c":         true,
		`\x`:                                      false, `\x07`: false, `\x7`: false, `C:\x07`: true,
		"0x2A": false, "0o52": false, "-0b101010": false, "0x_2a": false, "1_000": false, "1_0e1_0": false, "0x": true, "x_1": true,
	} {
		if err := books.canonical(key); (err == nil) != ok {
			t.Errorf("%q: %v", key, err)
		}
	}
}
