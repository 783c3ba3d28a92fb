package share

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
)

// A caller that leaves after its batch has ended, but before it gets the result, counts as gone.
func TestLeftIsCalledForACallerThatGoesAsItsBatchEnds(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that the batch ends before its callers run
	gone, left := 0, 0
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			b := &Batcher[int]{
				Width: 1,
				Send:  func(context.Context, []*Member[int]) { cancel() },
				Left:  func(gone []*Member[int]) { left += len(gone) },
			}
			at, _, _ := b.Share(t.Context(), "first", 0)
			ends := make(chan error, 2)
			for key, of := range map[string]context.Context{"goes": ctx, "stays": t.Context()} {
				go func() { _, _, err := b.Share(of, key, 0); ends <- err }()
			}
			synctest.Wait() // for the batch of two
			at.Leave()
			for range 2 {
				if err := <-ends; err != nil {
					gone++
				}
			}
			synctest.Wait() // for the call of Left
		})
	}
	if left != gone {
		t.Errorf("%d of 100 callers had gone, and Left was called for %d", gone, left)
	}
}
