package lease

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestDelay(t *testing.T) {
	terms, _ := newTerms(nil)
	a := &acquisition{request: &request{terms: terms}}
	for i := range 100 {
		a.backoffs = i
		full := longestBackoff
		if i < 6 {
			full = min(longestBackoff, 100*time.Millisecond<<i)
		}
		drawn := make(map[time.Duration]bool)
		for range 20 {
			d := a.delay(false)
			if d > full || d < full/2 {
				t.Fatalf("pause %d: %v, want %v to %v", i, d, full/2, full)
			}
			drawn[d] = true
		}
		if len(drawn) == 1 && i < 32 { // later pauses have the longest length
			t.Errorf("pause %d is always %v", i, full)
		}
	}
	if d := a.delay(true); d != longestBackoff {
		t.Errorf("heard: %v", d)
	}
	terms, _ = newTerms([]Term{Timeout(time.Minute), Interval(80 * time.Millisecond)})
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

// A release wakes a waiter only if the lease was held and its row has the waiter's mark. Otherwise the waiter tries
// again at once, because the mark of a free lease may have been swept away with the row.
func TestPauseWithoutANotification(t *testing.T) {
	for _, last := range []outcome{{live: true, notifies: true}, {live: true}, {notifies: true}, {}} {
		synctest.Test(t, func(t *testing.T) {
			terms, _ := newTerms([]Term{Timeout(24 * time.Hour), Interval(time.Hour)})
			a := &acquisition{request: &request{terms: terms, notified: time.Hour}, last: &last}
			w := new(queues).join("k")
			defer w.leave()
			start := time.Now()
			if !a.sleep(t.Context(), w, true) {
				t.Fatal(t.Context().Err())
			}
			pauses := 0
			if last.live && last.notifies {
				pauses = 1
			}
			if took := time.Since(start); took > 0 != (pauses == 1) || a.backoffs != pauses {
				t.Errorf("live %v, marked %v: after %v, of %d pauses", last.live, last.notifies, took, a.backoffs)
			}
		})
	}
}
