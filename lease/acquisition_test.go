package lease

import (
	"testing"
	"time"
)

func TestDelay(t *testing.T) {
	terms, _ := newTerms(nil)
	w := &acquisition{request: &request{terms: terms}}
	for i := range 100 {
		w.pauses = i
		full := longestPause
		if i < 6 {
			full = min(longestPause, 100*time.Millisecond<<i)
		}
		for range 20 {
			if d := w.delay(false); d > full || d < full/2 {
				t.Fatalf("pause %d: %v, want %v to %v", i, d, full/2, full)
			}
		}
	}
	if d := w.delay(true); d != longestPause {
		t.Errorf("heard: %v", d)
	}
	terms, _ = newTerms([]Term{Wait(time.Minute, 80*time.Millisecond)})
	w = &acquisition{request: &request{terms: terms}}
	for range 100 {
		if d := w.delay(false); d < 70*time.Millisecond || d > 90*time.Millisecond {
			t.Fatalf("interval: %v", d)
		}
	}
	w.last = &outcome{live: true}
	w.last.left.Valid = true
	if d := w.delay(false); d > 10*time.Millisecond {
		t.Errorf("the lease ends now, but %v", d)
	}
}
