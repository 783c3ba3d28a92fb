package lease

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestTerms(t *testing.T) {
	for _, test := range []struct {
		name  string
		terms []Term
		want  string // part of the error; empty: none
	}{
		{"none", nil, ""},
		{"shortest ttl", []Term{TTL(time.Millisecond)}, ""},
		{"longest ttl", []Term{TTL(24 * time.Hour)}, ""},
		{"no ttl", []Term{TTL(0)}, "ttl of 0s"},
		{"negative ttl", []Term{TTL(-time.Second)}, "ttl of -1s"},
		{"too long a ttl", []Term{TTL(24*time.Hour + 1)}, "ttl of 24h0m0.000000001s"},
		{"id", []Term{Resume("me"), Refresh()}, ""},
		{"empty id", []Term{Resume("")}, "an id"},
		{"id with NUL", []Term{Resume("a\x00")}, "an id"},
		{"id not UTF-8", []Term{Resume("\xff")}, "an id"},
		{"long id", []Term{Resume(strings.Repeat("o", 513))}, "an id"},
		{"refresh without id", []Term{Refresh()}, "Refresh needs Resume"},
		{"no retries", []Term{Retries(0)}, ""},
		{"negative retries", []Term{Retries(-1)}, "-1 retries"},
		{"no back-off", []Term{Backoff(0)}, "back-off of 0s"},
		{"no timeout", []Term{Timeout(0)}, ""},
		{"negative timeout", []Term{Timeout(-1)}, "timeout of -1ns"},
		{"interval", []Term{Timeout(time.Second), Interval(time.Millisecond)}, ""},
		{"no wait", []Term{NoWait()}, ""},
		{"no interval", []Term{Interval(0)}, "interval of 0s"},
		{"negative wait", []Term{Timeout(-1)}, "timeout of -1ns"},
		{"two ways to wait", []Term{NoWait(), Retries(1)}, "NoWait makes one attempt"},
		{"holder", []Term{Holder("me")}, ""},
		{"no holder", []Term{Holder("")}, "holder"},
		{"mark in an id", []Term{Resume("me\x1fAB")}, "U+001F"},
		{"mark in a holder", []Term{Holder("me\x1fAB")}, "U+001F"},
		{"heartbeat", []Term{Heartbeat(time.Second)}, ""},
		{"no heartbeat", []Term{Heartbeat(0)}, "heartbeat of 0s"},
		{"margin", []Term{TTL(time.Second), Margin(time.Second - 1)}, ""},
		{"negative margin", []Term{Margin(-1)}, "a margin of -1ns, want 0 or more and less than the ttl of 30s"},
		{"too wide a margin", []Term{TTL(time.Second), Margin(time.Second)}, "a margin of 1s"},
		{"too slow a heartbeat for the margin", []Term{TTL(time.Second), Margin(time.Second / 2), Heartbeat(time.Second / 2)}, "heartbeat of 500ms, want more than 0 and less than the 500ms"},
		{"too slow a heartbeat", []Term{TTL(time.Second), Heartbeat(time.Second)}, "heartbeat of 1s"},
		{"minimum hold", []Term{MinHold(24 * time.Hour)}, ""},
		{"negative minimum hold", []Term{MinHold(-1)}, "a minimum hold of -1ns, want 0 to 24h0m0s"},
		{"too long a minimum hold", []Term{MinHold(24*time.Hour + 1)}, "a minimum hold of 24h0m0.000000001s"},
		{"nil", []Term{nil}, "nil term"},
		{"several", []Term{TTL(0), nil, Retries(-1)}, "nil term\na ttl of 0s, want 1ms to 24h0m0s\n-1 retries, want 0 or more"},
	} {
		_, err := newTerms(test.terms)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

func TestTermsOfACallWin(t *testing.T) {
	got, err := newTerms([]Term{TTL(time.Hour), NoWait()}, []Term{TTL(time.Second), Timeout(time.Hour)})
	if err != nil || got.ttl != time.Second || got.limit != time.Hour || got.retries != math.MaxInt {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = newTerms([]Term{Timeout(time.Minute), Interval(time.Second)}, []Term{NoWait()}, []Term{TTL(time.Second)})
	if err != nil || !got.even || got.limit != 5*time.Second || got.retries != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = newTerms(nil)
	if err != nil || got.ttl != 30*time.Second || got.retries != math.MaxInt || got.backoff != 100*time.Millisecond ||
		got.limit != 0 || got.beat() != 10*time.Second {
		t.Errorf("defaults: %+v, %v", got, err)
	}
}
