package lease

import (
	"testing"
	"time"
)

func TestDelay(t *testing.T) {
	terms, _ := newTerms(nil)
	a := &acquisition{request: &request{terms: terms}}
	for i := range 100 {
		a.pauses = i
		full := longestPause
		if i < 6 {
			full = min(longestPause, 100*time.Millisecond<<i)
		}
		drawn := make(map[time.Duration]bool)
		for range 20 {
			d := a.delay(false)
			if d > full || d < full/2 {
				t.Fatalf("pause %d: %v, want %v to %v", i, d, full/2, full)
			}
			drawn[d] = true
		}
		if len(drawn) == 1 && i < 32 { // from there on it is the longest
			t.Errorf("pause %d is always %v", i, full)
		}
	}
	if d := a.delay(true); d != longestPause {
		t.Errorf("heard: %v", d)
	}
	terms, _ = newTerms([]Term{Wait(time.Minute, 80*time.Millisecond)})
	a = &acquisition{request: &request{terms: terms}}
	for range 100 {
		if d := a.delay(false); d < 70*time.Millisecond || d > 90*time.Millisecond {
			t.Fatalf("interval: %v", d)
		}
	}
	a.last = &outcome{live: true}
	a.last.left.Valid = true
	if d := a.delay(false); d > 10*time.Millisecond {
		t.Errorf("the lease ends now, but %v", d)
	}
}
