package tokens_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A caller's connection no longer responds. Issue of the same name still works for other callers, and each later call
// gets a higher token.
func TestTokensOneBlackHoleStopsNobodyElse(t *testing.T) {
	harness.EachBlackhole(t, func(t *testing.T, b harness.Base, h *harness.Blackhole) {
		db := b.Raw(t, h.DSN)
		store := harness.NewStore(t, db)
		harness.IssueToken(t, store, "books")
		h.Arm(1)
		ctx, cancel := context.WithCancel(t.Context())
		stuck := make(chan error, 1)
		go func() {
			_, err := store.Issue(ctx, "books")
			stuck <- err
		}()
		harness.Eventually(t, "a swallowed statement", func() bool { return h.Count() == 1 })
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				limited, cancel := context.WithTimeout(t.Context(), harness.Patience)
				defer cancel()
				var last int64
				for range 10 {
					token, err := store.Issue(limited, "books")
					if err != nil || token.Value <= last {
						t.Errorf("Issue = %v, %v after %d", token, err, last)
						return
					}
					last = token.Value
				}
			})
		}
		wg.Wait()
		select {
		case err := <-stuck:
			t.Errorf("the swallowed call returned %v", err)
		default:
		}
		cancel()
		if err := <-stuck; !errors.Is(err, context.Canceled) {
			t.Errorf("the swallowed call: %v", err)
		}
		h.End()
		harness.IssueToken(t, store, "books")
	})
}

// Several unresponsive connections delay other callers a little longer, but don't stop these callers.
func TestTokensSeveralBlackHolesStopNobodyElse(t *testing.T) {
	harness.EachBlackhole(t, func(t *testing.T, b harness.Base, h *harness.Blackhole) {
		db := b.Raw(t, h.DSN)
		db.SetMaxIdleConns(8)
		store := harness.NewStore(t, db)
		harness.IssueToken(t, store, "books")
		h.Arm(3)
		ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
		defer cancel()
		var answered sync.WaitGroup
		results := make(chan error, 8)
		for i := range 8 {
			answered.Go(func() {
				_, err := store.Issue(ctx, "books")
				results <- err
			})
			harness.Eventually(t, "a swallowed statement", func() bool { return h.Count() >= min(i+1, 3) })
		}
		for range 5 {
			if err := <-results; err != nil {
				t.Errorf("Issue: %v", err)
			}
		}
		cancel()
		answered.Wait()
		h.End()
	})
}
