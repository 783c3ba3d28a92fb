package lease

import (
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
		{"owner", []Term{Owner("me"), Refresh()}, ""},
		{"empty owner", []Term{Owner("")}, "owner"},
		{"owner with NUL", []Term{Owner("a\x00")}, "owner"},
		{"owner not UTF-8", []Term{Owner("\xff")}, "owner"},
		{"long owner", []Term{Owner(strings.Repeat("o", 513))}, "owner"},
		{"refresh without owner", []Term{Refresh()}, "Refresh needs Owner"},
		{"no retries", []Term{Retries(0)}, ""},
		{"negative retries", []Term{Retries(-1)}, "-1 retries"},
		{"no back-off", []Term{Backoff(0)}, "back-off of 0s"},
		{"no timeout", []Term{Timeout(0)}, ""},
		{"negative timeout", []Term{Timeout(-1)}, "timeout of -1ns"},
		{"wait", []Term{Wait(time.Second, time.Millisecond)}, ""},
		{"no wait", []Term{Wait(0, 0)}, ""},
		{"wait without interval", []Term{Wait(time.Second, 0)}, "interval of 0s"},
		{"negative wait", []Term{Wait(-1, 1)}, "wait of -1ns"},
		{"two ways to wait", []Term{Wait(time.Second, 1), Retries(1)}, "Wait replaces Retries, Backoff and Timeout"},
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
	got, err := newTerms([]Term{TTL(time.Hour), Wait(time.Minute, time.Second)}, []Term{TTL(time.Second), Timeout(time.Hour)})
	if err != nil || got.ttl != time.Second || got.even || got.limit != time.Hour || got.retries != 10 {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = newTerms([]Term{Wait(time.Minute, time.Second)}, []Term{TTL(time.Second)})
	if err != nil || !got.even || got.limit != time.Minute {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = newTerms(nil)
	if err != nil || got.ttl != 30*time.Second || got.retries != 10 || got.backoff != 100*time.Millisecond ||
		got.limit != 5*time.Second || got.beat() != 10*time.Second {
		t.Errorf("defaults: %+v, %v", got, err)
	}
}
