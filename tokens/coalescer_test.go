package tokens

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/hedge"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// A ledger is a fake of the database. Its statements wait until the test lets them continue, or until their context
// ends.
type ledger struct {
	limit int64
	fail  error
	gate  chan struct{} // nil: statements don't wait

	mu    sync.Mutex
	token map[string]int64
	sent  []string // "name+n"
	ended []error  // of the context, when a statement had started
}

func (d *ledger) take(ctx context.Context, name string, n int64) (taking, error) {
	d.mu.Lock()
	d.sent = append(d.sent, fmt.Sprintf("%s+%d", name, n))
	d.mu.Unlock()
	if d.gate != nil {
		select {
		case <-d.gate:
		case <-ctx.Done():
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = append(d.ended, ctx.Err())
	if err := errors.Join(ctx.Err(), d.fail); err != nil {
		return taking{}, err
	}
	if d.token == nil {
		d.token = make(map[string]int64)
	}
	if d.limit > 0 {
		n = min(n, d.limit-d.token[name])
	}
	d.token[name] += n
	return taking{d.token[name], n, n}, nil
}

// A caller is a call of issue in a goroutine.
type caller struct {
	cancel context.CancelFunc
	done   chan struct{}
	token  int64
	err    error
}

func call(co *coalescer, name string) *caller {
	ctx, cancel := context.WithCancel(context.Background())
	c := &caller{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.token, _, c.err = co.issue(ctx, name)
	}()
	synctest.Wait()
	return c
}

func (c *caller) returned() bool {
	synctest.Wait()
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// idle fails the test if a name is still served.
func idle(t *testing.T, co *coalescer) {
	t.Helper()
	synctest.Wait()
	co.mu.Lock()
	defer co.mu.Unlock()
	if len(co.byName) > 0 {
		t.Errorf("names still served: %v", co.byName)
	}
}

func TestCallersShareTheNextStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &ledger{gate: make(chan struct{})}
		co := &coalescer{take: d.take}
		first := call(co, "books")
		var rest []*caller
		for range 5 {
			rest = append(rest, call(co, "books"))
		}
		d.gate <- struct{}{}
		if !first.returned() || first.token != 1 || first.err != nil {
			t.Fatalf("first = %d, %v; want 1", first.token, first.err)
		}
		if rest[0].returned() {
			t.Fatal("a call that came after the statement was sent got its token from it")
		}
		d.gate <- struct{}{}
		for i, c := range rest {
			if !c.returned() || c.token != int64(i+2) || c.err != nil {
				t.Errorf("call %d = %d, %v; want %d", i, c.token, c.err, i+2)
			}
		}
		if want := []string{"books+1", "books+5"}; !slices.Equal(d.sent, want) {
			t.Errorf("sent %q, want %q", d.sent, want)
		}
		idle(t, co)
	})
}

func TestNamesDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &ledger{gate: make(chan struct{})}
		co := &coalescer{take: d.take}
		books, pens := call(co, "books"), call(co, "pens")
		if want := []string{"books+1", "pens+1"}; !slices.Equal(d.sent, want) {
			t.Errorf("sent %q, want %q", d.sent, want)
		}
		close(d.gate)
		if !books.returned() || !pens.returned() || books.token != 1 || pens.token != 1 {
			t.Errorf("tokens = %d, %d; want 1 and 1", books.token, pens.token)
		}
		idle(t, co)
	})
}

func TestCancelledCallerHarmsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &ledger{gate: make(chan struct{})}
		co := &coalescer{take: d.take}
		first := call(co, "books")
		second, third := call(co, "books"), call(co, "books")
		second.cancel()
		if !second.returned() || !errors.Is(second.err, context.Canceled) {
			t.Fatalf("second = %v, want context.Canceled at once", second.err)
		}
		close(d.gate)
		if !first.returned() || !third.returned() || first.err != nil || third.err != nil {
			t.Fatalf("errors = %v, %v", first.err, third.err)
		}
		if first.token != 1 || third.token != 3 {
			t.Errorf("tokens = %d, %d; want 1 and 3", first.token, third.token)
		}
		idle(t, co)
	})
}

func TestStatementIsCancelledWhenAllHaveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &ledger{gate: make(chan struct{})}
		co := &coalescer{take: d.take}
		first := call(co, "books")
		second, third := call(co, "books"), call(co, "books")
		d.gate <- struct{}{} // now second and third share the statement under way
		if !first.returned() {
			t.Fatal("first waits")
		}
		second.cancel()
		if !second.returned() || len(d.ended) != 1 {
			t.Fatal("the statement was cancelled while a caller was waiting")
		}
		third.cancel()
		if !third.returned() || len(d.ended) != 2 || d.ended[1] == nil {
			t.Errorf("the statement was not cancelled: %v", d.ended)
		}
		idle(t, co)
	})
}

func TestAbandonedBatchIsNotSentAndNotJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &ledger{gate: make(chan struct{})}
		co := &coalescer{take: d.take}
		first, second := call(co, "books"), call(co, "books")
		second.cancel()
		if !second.returned() {
			t.Fatal("second waits")
		}
		third := call(co, "books")
		close(d.gate)
		if !first.returned() || !third.returned() || third.err != nil || third.token != 2 {
			t.Errorf("third = %d, %v; want 2", third.token, third.err)
		}
		if want := []string{"books+1", "books+1"}; !slices.Equal(d.sent, want) {
			t.Errorf("sent %q, want %q", d.sent, want)
		}
		idle(t, co)
	})
}

func TestEndedContextSendsNothing(t *testing.T) {
	d := new(ledger)
	co := &coalescer{take: d.take}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := co.issue(ctx, "books"); !errors.Is(err, context.Canceled) || len(d.sent) > 0 {
		t.Errorf("error %v, sent %q; want context.Canceled and nothing", err, d.sent)
	}
}

func TestErrorReachesAllOfTheBatchOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		d := &ledger{gate: make(chan struct{})}
		co := &coalescer{take: d.take}
		first := call(co, "books")
		second, third := call(co, "books"), call(co, "books")
		d.gate <- struct{}{}
		if !first.returned() || first.err != nil {
			t.Fatalf("first: %v", first.err)
		}
		fourth := call(co, "books")
		d.fail = broken
		d.gate <- struct{}{}
		if !second.returned() || !third.returned() || !errors.Is(second.err, broken) || !errors.Is(third.err, broken) {
			t.Errorf("errors = %v, %v; want both broken", second.err, third.err)
		}
		d.fail = nil
		d.gate <- struct{}{}
		if !fourth.returned() || fourth.err != nil || fourth.token != 2 {
			t.Errorf("fourth = %d, %v; want 2", fourth.token, fourth.err)
		}
		idle(t, co)
	})
}

func TestAsManySucceedAsTokensAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &ledger{limit: 3, gate: make(chan struct{})}
		co := &coalescer{take: d.take}
		callers := []*caller{call(co, "books"), call(co, "books"), call(co, "books"), call(co, "books"), call(co, "books")}
		close(d.gate)
		for i, c := range callers {
			if !c.returned() {
				t.Fatalf("call %d waits", i)
			}
			if i < 3 && (c.err != nil || c.token != int64(i+1)) {
				t.Errorf("call %d = %d, %v; want %d", i, c.token, c.err, i+1)
			}
			if i >= 3 && !errors.Is(c.err, sqlfence.ErrTokenLimit) {
				t.Errorf("call %d = %d, %v; want ErrTokenLimit", i, c.token, c.err)
			}
		}
		idle(t, co)
	})
}

// Callers come, go and cancel at random times. No token is given twice, each goroutine's tokens rise, and in the end no
// name is served any more.
func TestManyCallersGetDistinctRisingTokens(t *testing.T) {
	d := new(ledger)
	co := &coalescer{take: d.take}
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := make(map[int64]bool)
	for g := range 16 {
		wg.Go(func() {
			var last int64
			for i := range 500 {
				ctx, cancel := context.WithCancel(context.Background())
				if (g+i)%3 == 0 {
					go cancel()
				}
				token, _, err := co.issue(ctx, "books")
				cancel()
				if errors.Is(err, context.Canceled) {
					continue
				}
				mu.Lock()
				if err != nil || token <= last || seen[token] {
					t.Errorf("token %d, %v after %d, seen %v", token, err, last, seen[token])
				}
				seen[token], last = true, token
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// A statement without a response delays only the statement's callers.
func TestLateStatementDoesNotHoldUpTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(ledger)
		stuck := make(chan struct{})
		stuckFirst := true
		co := &coalescer{take: func(ctx context.Context, name string, n int64) (taking, error) {
			if stuckFirst {
				stuckFirst = false
				<-stuck
			}
			return d.take(ctx, name, n)
		}}
		first := call(co, "books")
		second, third := call(co, "books"), call(co, "books")
		time.Sleep(hedge.Timeout - 1)
		if second.returned() {
			t.Fatal("the second statement was sent before the first one was late")
		}
		time.Sleep(time.Nanosecond)
		if !second.returned() || !third.returned() || second.token != 1 || third.token != 2 {
			t.Errorf("tokens = %d, %d; want 1 and 2 from one statement", second.token, third.token)
		}
		// From now on no call waits for the late statement.
		for want := int64(3); want <= 5; want++ {
			if c := call(co, "books"); !c.returned() || c.token != want {
				t.Errorf("token = %d, want %d", c.token, want)
			}
		}
		close(stuck)
		if !first.returned() || first.token != 6 {
			t.Errorf("the late one's token = %d, want 6", first.token)
		}
		if want := []string{"books+2", "books+1", "books+1", "books+1", "books+1"}; !slices.Equal(d.sent, want) {
			t.Errorf("sent %q, want %q", d.sent, want)
		}
		idle(t, co)
	})
}

// If the database is slow, or another session has locked the ledger's row, a further statement is sent each time that
// the wait has doubled. If the database responds in time, one statement is sent at a time.
func TestSlowDatabaseIsNotFlooded(t *testing.T) {
	for _, test := range []struct {
		takes, lasts time.Duration
		pool         int // how many connections it has at the most; 0 for any number
		most, sent   int // statements at once and altogether
	}{
		{hedge.Timeout - 1, 100 * hedge.Timeout, 0, 1, 102},
		{7*hedge.Timeout - 1, 7*hedge.Timeout - hedge.Timeout/10, 0, 3, 3}, // at 0, 1 and 3
		{500 * hedge.Timeout, 499 * hedge.Timeout, 0, 4, 4},                // and at 7, but no more
		{500 * hedge.Timeout, 499 * hedge.Timeout, 12, 4, 4},
		{500 * hedge.Timeout, 499 * hedge.Timeout, 8, 3, 3},
		{500 * hedge.Timeout, 499 * hedge.Timeout, 4, 2, 2},
		{500 * hedge.Timeout, 499 * hedge.Timeout, 3, 1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var now, most, sent int
			db := sql.OpenDB(new(fakedb.DB))
			defer db.Close()
			db.SetMaxOpenConns(test.pool)
			co := &coalescer{db: db, take: func(_ context.Context, _ string, n int64) (taking, error) {
				mu.Lock()
				now, sent = now+1, sent+1
				most = max(most, now)
				mu.Unlock()
				time.Sleep(test.takes)
				mu.Lock()
				defer mu.Unlock()
				now--
				return taking{n, n, n}, nil
			}}
			var wg sync.WaitGroup
			for start := time.Now(); time.Since(start) < test.lasts; time.Sleep(hedge.Timeout / 10) {
				wg.Go(func() { _, _, _ = co.issue(context.Background(), "books") })
			}
			mu.Lock()
			if most != test.most || sent > test.sent {
				t.Errorf("statements of %v, a pool of %d: %d at once, %d in all; want %d and at most %d", test.takes, test.pool, most, sent, test.most, test.sent)
			}
			mu.Unlock()
			wg.Wait()
			idle(t, co)
		})
	}
}
