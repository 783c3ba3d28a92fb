package core

import (
	"errors"
	"testing"
)

// plainErrors are untyped: a test needs only that there is an error.
type plainErrors struct{ ErrorFactory }

func (plainErrors) Unguardable(u Unguarded, _ error) error { return errors.New(u.Reason) }

func TestCanonicalKey(t *testing.T) {
	books := Table{factory: plainErrors{}}
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
