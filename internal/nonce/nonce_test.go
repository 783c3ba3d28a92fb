package nonce

import (
	"regexp"
	"testing"
)

func TestNew(t *testing.T) {
	plain, seen := regexp.MustCompile("^[A-Z2-7]{16}$"), make(map[string]bool)
	for range 1000 {
		n := New()
		if !plain.MatchString(n) || seen[n] {
			t.Fatalf("%q, or again", n)
		}
		seen[n] = true
	}
}

func TestFix(t *testing.T) {
	defer fixed.Store(nil)
	Fix("nonce")
	if n := New(); n != "nonce" {
		t.Errorf("%q", n)
	}
}
