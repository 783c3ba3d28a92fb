package lease

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence/internal/fakedb"
	"github.com/sqlfence/sqlfence/internal/late"
)

func TestNormalizeKey(t *testing.T) {
	for _, test := range []struct{ name, key, want string }{
		{"plain", "books/42", "books/42"},
		{"composed", "caf\u00e9", "caf\u00e9"},
		{"decomposed", "cafe\u0301", "caf\u00e9"},
		{"longest", strings.Repeat("k", 512), strings.Repeat("k", 512)},
		{"shorter once normalised", strings.Repeat("e\u0301", 256), strings.Repeat("\u00e9", 256)},
		{"empty", "", ""},
		{"too long", strings.Repeat("k", 513), ""},
		{"longer once normalised", strings.Repeat("\u0958", 171), ""}, // a letter and a mark
		{"NUL", "a\x00b", ""},
		{"not UTF-8", "a\xff", ""},
	} {
		got, err := NormalizeKey(test.key)
		if got != test.want || errors.Is(err, ErrInvalid) != (test.want == "") {
			t.Errorf("%s: %q, %v; want %q", test.name, got, err, test.want)
		}
	}
}

func TestLockID(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		id := newLockID()
		if err := ValidateLockID(id); err != nil || seen[id] {
			t.Fatalf("%q: %v, seen %v", id, err, seen[id])
		}
		seen[id] = true
	}
	for _, id := range []string{"", "short", strings.Repeat("A", 21), strings.Repeat("A", 23),
		strings.Repeat("A", 21) + "=", strings.Repeat("A", 21) + "+", strings.Repeat("A", 20) + "\u00e9"} {
		if err := ValidateLockID(id); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", id, err)
		}
	}
}

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
		{"two ways to wait", []Term{Wait(time.Second, 1), Retries(1)}, "Wait stands in the place"},
		{"heartbeat", []Term{Heartbeat(time.Second)}, ""},
		{"no heartbeat", []Term{Heartbeat(0)}, "heartbeat of 0s"},
		{"too slow a heartbeat", []Term{TTL(time.Second), Heartbeat(time.Second)}, "heartbeat of 1s"},
		{"nil", []Term{nil}, "nil term"},
		{"several", []Term{TTL(0), Retries(-1)}, "-1 retries"},
	} {
		_, err := newTerms(test.terms)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

func TestTermsOfACallWin(t *testing.T) {
	got, err := newTerms([]Term{TTL(time.Hour), Wait(time.Minute, time.Second)}, []Term{TTL(time.Second), Timeout(time.Hour)})
	if err != nil || got.ttl != time.Second || got.waits || got.timeout != time.Hour {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = newTerms([]Term{Wait(time.Minute, time.Second)}, []Term{TTL(time.Second)})
	if err != nil || !got.waits || got.limit != time.Minute {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = newTerms(nil)
	if err != nil || got.ttl != 30*time.Second || got.retries != 10 || got.backoff != 100*time.Millisecond ||
		got.timeout != 5*time.Second || got.beat() != 10*time.Second {
		t.Errorf("defaults: %+v, %v", got, err)
	}
}

func TestDelay(t *testing.T) {
	terms, _ := newTerms(nil)
	w := &waiter{request: &request{terms: terms}}
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
	w = &waiter{request: &request{terms: terms}}
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

// The line is served in order, also when somebody leaves it.
func TestLine(t *testing.T) {
	var l lines
	first := func(p *place) bool {
		select {
		case <-p.first:
			return true
		default:
			return false
		}
	}
	a, b, c := l.join("k"), l.join("k"), l.join("k")
	other := l.join("other")
	if !first(a) || first(b) || first(c) || !first(other) {
		t.Fatal("the first to come is not the first")
	}
	b.leave()
	a.leave()
	if !first(c) {
		t.Error("nobody is first")
	}
	l.wake("k")
	l.wake("k")
	if len(c.woken) != 1 || len(other.woken) != 0 {
		t.Errorf("woken: %d, %d", len(c.woken), len(other.woken))
	}
	l.wake("")
	if len(other.woken) != 1 {
		t.Error("not all were woken")
	}
	c.leave()
	if l.busy("k") || !l.busy("other") {
		t.Error("busy is wrong")
	}
	l.wake("k")
}

// Whoever waits for an answer too long lets the next one ask, and comes back behind it.
func TestLineStepsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		first := func(p *place) bool {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			select {
			case <-p.first:
				return true
			default:
				return p.await(ended)
			}
		}
		a, b, c := l.join("k"), l.join("k"), l.join("k")
		a.asks()
		time.Sleep(late.Patience - 1)
		synctest.Wait()
		if first(b) {
			t.Fatal("the second may ask too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !first(b) || first(c) {
			t.Fatal("the second may not ask, or the third may")
		}
		b.asks()
		time.Sleep(2*late.Patience - 1)
		synctest.Wait()
		if first(c) {
			t.Fatal("the third may ask as early as the second")
		}
		held := &outcome{live: true, holder: "me"}
		held.left.Int64, held.left.Valid = time.Hour.Microseconds(), true
		b.answered(held)
		if c.heard() != held {
			t.Error("the third doesn't know what the second was told")
		}
		a.answered(nil)
		if !first(b) || first(a) || first(c) {
			t.Error("the late one is not behind the one who asks")
		}
		b.leave()
		if !first(a) || first(c) {
			t.Error("the late one is not before those who came later")
		}
		l.wake("k")
		if c.heard() != nil {
			t.Error("what was said before a release still counts")
		}
		a.asks()
		time.Sleep(time.Hour)
		synctest.Wait()
		if !first(c) {
			t.Error("nobody is first")
		}
		a.leave() // without an answer
		c.leave()
		if l.busy("k") {
			t.Error("the line is still there")
		}
	})
}

// Only so many step out of the line, of a small pool hardly anybody: the others wait.
func TestLineIsNotFlooded(t *testing.T) {
	for pool, want := range map[int]int{0: 4, 100: 4, 8: 3, 4: 2, 3: 1} {
		synctest.Test(t, func(t *testing.T) {
			db := sql.OpenDB(new(fakedb.DB))
			defer db.Close()
			db.SetMaxOpenConns(pool)
			l := lines{db: db}
			var asking atomic.Int32
			ctx, cancel := context.WithCancel(t.Context())
			var waiters sync.WaitGroup
			for range 10 {
				p := l.join("k")
				waiters.Go(func() {
					if p.await(ctx) {
						asking.Add(1)
						p.asks()
						<-ctx.Done() // what it asks is not answered
						p.answered(nil)
					}
					p.leave()
				})
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if got := int(asking.Load()); got != want {
				t.Errorf("a pool of %d: %d ask at once, want %d", pool, got, want)
			}
			cancel()
			waiters.Wait()
			if l.busy("k") {
				t.Error("the line is still there")
			}
		})
	}
}

// What somebody was told counts no longer than the lease that it was told of.
func TestLineForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		a, b := l.join("k"), l.join("k")
		won := &outcome{won: &grant{Info: Info{Holder: "me", ExpiresAt: time.Now().Add(time.Minute)}, left: time.Minute}}
		a.asks()
		a.answered(won)
		a.leave()
		if o := b.heard(); o == nil || o.holder != "me" || o.until.Int64 != won.won.ExpiresAt.UnixMicro() {
			t.Errorf("heard %+v of the one before", o)
		}
		time.Sleep(time.Minute + 1)
		if o := b.heard(); o != nil {
			t.Errorf("heard %+v of a lease that has ended", o)
		}
		b.leave()
	})
}

// The tables that the documentation shows are the ones that Setup creates.
func TestDocumentedTables(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, create := range []string{createPostgres, createSQLite} {
		if shown := "//\t" + strings.ReplaceAll(create, "\n", "\n//\t") + "\n//\n"; !strings.Contains(string(doc), shown) {
			t.Errorf("doc.go doesn't show\n%s", shown)
		}
	}
}

type stateError string

func (e stateError) Error() string    { return "state " + string(e) }
func (e stateError) SQLState() string { return string(e) }

func TestMayHaveCommitted(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{errors.New("EOF"), true},
		{stateError("08P01"), true}, // a pooler whose connection broke
		{stateError("57P01"), true},
		{stateError("40003"), true},
		{stateError("40001"), false},
		{stateError("42P01"), false},
		{stateError("57014"), false},
		{errors.New("sql: database is closed"), false},
	} {
		if got := mayHaveCommitted(test.err); got != test.want {
			t.Errorf("%v: %v, want %v", test.err, got, test.want)
		}
	}
}
