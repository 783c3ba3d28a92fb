package adopting_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// underLease gives each request the token of the lease before it reads anything. The request's write is then refused if
// another process has led in between, even if the request's process leads again.
func (p *program) underLease(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		held, err := p.election.Lease()
		if err != nil {
			fail(w, err) // 503 for lease.ErrNotLeader, 409 for sqlfence.ErrStale
			return
		}
		next.ServeHTTP(w, r.WithContext(sqlfence.WithFence(r.Context(), held.Token())))
	})
}

// fail answers a request after its write was refused.
func fail(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, sqlfence.ErrStale):
		http.Error(w, "another process has taken over", http.StatusConflict)
	case errors.Is(err, lease.ErrNotLeader):
		http.Error(w, "this process doesn't lead", http.StatusServiceUnavailable)
	default:
		http.Error(w, "the database failed", http.StatusInternalServerError)
	}
}

// raise returns a handler that reads a price and then writes the price plus 1. It calls between after the read.
func (p *program) raise(between func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		var price int
		err := p.db.QueryRowContext(ctx, "SELECT price FROM books WHERE id = 1").Scan(&price)
		if err == nil {
			between()
			_, err = p.db.ExecContext(ctx, "UPDATE books SET price = $1 WHERE id = 1", price+1)
		}
		if err != nil {
			fail(w, err)
		}
	})
}

// A request that reads before it writes must present the token that its process held before the read. If the write
// takes the current token of an election's source, a process that has lost and regained the lease overwrites its
// successor.
func TestHandlers(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for name, test := range map[string]struct {
			wrap   func(*program, http.Handler) http.Handler
			status int
			books  string
		}{
			"under the lease of the request's begin": {(*program).underLease, http.StatusConflict, "1:50@2 2:10@0 3:10@0"},
			"under the lease of the moment": {
				func(_ *program, next http.Handler) http.Handler { return next },
				http.StatusOK, "1:11@3 2:10@0 3:10@0", // the successor's price is lost
			},
		} {
			t.Run(name, func(t *testing.T) {
				sh := harness.NewShop(t, b)
				sh.Reset(t, 0)
				first, _ := start(t, b, sh.Source)
				harness.Eventually(t, "a leader", first.election.IsLeader)
				status := func(next http.Handler) int {
					w := httptest.NewRecorder()
					test.wrap(first, next).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody))
					return w.Code
				}
				var second *program
				got := status(first.raise(func() {
					var stop func()
					second, stop = start(t, b, sh.Source)
					second.leads(t, first, harness.NewLeases(t, sh.Plain))
					if err := second.setPrice(1, 50); err != nil {
						t.Error(err)
					}
					stop()
					harness.Eventually(t, "the first to lead again", first.election.IsLeader)
				}))
				if got != test.status {
					t.Errorf("status %d, want %d", got, test.status)
				}
				if got := sh.State(t, true); got != test.books {
					t.Errorf("the books are %s, want %s", got, test.books)
				}

				// With and without underLease, a process that doesn't lead must return 503.
				other, _ := start(t, b, sh.Source)
				w := httptest.NewRecorder()
				test.wrap(other, other.raise(func() {})).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody))
				if w.Code != http.StatusServiceUnavailable {
					t.Errorf("status %d of a process that doesn't lead", w.Code)
				}
			})
		}
	})
}

// leads makes p the leader instead of first, and waits until first has noticed the loss.
func (p *program) leads(t *testing.T, first *program, leases *lease.Leases) {
	t.Helper()
	held := depose(t, leases, first.election)
	harness.Eventually(t, "the next leader", p.election.IsLeader)
	_ = held.Extend(context.WithoutCancel(t.Context()), time.Hour)
	harness.WantError(t, <-first.lost, lease.ErrLeaseLost)
}
