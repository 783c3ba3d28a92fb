package conformance

import (
	"testing"
	"testing/synctest"
	"time"
)

// A check fails at once, unless it varies, or there was a pause.
func TestAttemptsEndAtOnceUnlessTheyVary(t *testing.T) {
	for _, test := range []struct {
		name   string
		varies bool
		takes  time.Duration
		fails  int // how many of its first attempts fail
		made   int
		passes bool
	}{
		{"passes", false, time.Second, 0, 1, true},
		{"fails", false, time.Second, 100, 1, false},
		{"varies", true, time.Second, 5, 6, true},
		{"varies and fails", true, time.Second, 100, 10, false},
		{"a pause", false, 20 * time.Second, 1, 2, true},
		{"passes in a pause", false, 20 * time.Second, 0, 1, true},
		{"fails in each pause", false, 20 * time.Second, 100, 5, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made := 0
				reason := check{varies: test.varies}.attempts(func(attempt int) string {
					if attempt != made {
						t.Errorf("attempt %d, want %d", attempt, made)
					}
					made++
					time.Sleep(test.takes)
					if made <= test.fails {
						return "fails"
					}
					return ""
				})
				if made != test.made || (reason == "") != test.passes {
					t.Errorf("%d attempts: %q", made, reason)
				}
			})
		})
	}
}
