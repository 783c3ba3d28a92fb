package basedriver

import "testing"

type labelled int64

func (labelled) String() string { return "42" }

// bytesOf has a method that returns the bytes that pgx would store.
type bytesOf string

func (b bytesOf) BytesValue() ([]byte, error) { return []byte(b)[:1], nil }

func TestText(t *testing.T) {
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
		{bytesOf("a"), "a", true},
		{bytesOf("ab"), "", false}, // BytesValue returns only the a
		{"a", "a", true},
		{[]byte("a"), "a", true},
		{[16]byte{15: 1}, "00000000-0000-0000-0000-000000000001", true},
		{nil, "", false},
		{1.5, "", false},
	} {
		if got, _, ok := Text(tt.value, true); got != tt.want || ok != tt.ok {
			t.Errorf("Text(%v) = %q, %v; want %q, %v", tt.value, got, ok, tt.want, tt.ok)
		}
	}
}

func TestTextOfBytes(t *testing.T) {
	value := []byte("42")
	for _, v := range []any{value, &value} {
		if got, _, ok := Text(v, false); ok {
			t.Errorf("Text(%v) = %q, which may be stored as \\x3432", v, got)
		}
	}
	if got, _, ok := Text("42", false); got != "42" || !ok {
		t.Errorf("Text(42) = %q, %v", got, ok)
	}
}
