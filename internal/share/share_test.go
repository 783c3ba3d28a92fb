package share

import (
	"context"
	"runtime"
	"testing"
)

// A caller that leaves after its batch has ended, but before it gets the result, counts as gone.
func TestLeftIsCalledForACallerThatGoesAsItsBatchEnds(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that the batch ends before its callers run
	gone, left, heard := 0, 0, 0
	for range 100 {
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
		for forming := 0; forming < 2; runtime.Gosched() {
			b.mu.Lock()
			forming = len(b.forming)
			b.mu.Unlock()
		}
		at.Leave()
		for range 2 {
			if err := <-ends; err != nil {
				gone++
			}
		}
		b.mu.Lock() // Left is called with it
		heard = left
		b.mu.Unlock()
	}
	if heard != gone {
		t.Errorf("%d of 100 callers had gone, and Left was called for %d", gone, heard)
	}
}
