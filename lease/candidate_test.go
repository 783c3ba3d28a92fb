package lease_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
)

// A candidate runs in an election, and records its callbacks.
type candidate struct {
	*lease.Election
	t     *testing.T
	works func(ctx context.Context) // the leader's work; nil: it waits for the end of its context
	quiet bool                      // the end of the work isn't recorded

	mu   sync.Mutex
	told []string
	lost error
}

func newCandidate(t *testing.T, terms ...lease.Term) *candidate {
	c := &candidate{t: t}
	var err error
	c.Election, err = lease.NewElection("jobs", lease.Callbacks{
		Elected: func(ctx context.Context) {
			c.tell("elected")
			if _, ok := sqlfence.FenceFrom(ctx, "jobs"); !ok {
				t.Error("the context of the work has no token")
			}
			if c.works != nil {
				c.works(ctx)
			} else {
				<-ctx.Done()
			}
			if !c.quiet {
				c.tell("worked: " + kind(context.Cause(ctx)))
			}
		},
		Short: func(left time.Duration, err error) {
			c.tell("short: " + left.Round(time.Second).String() + " " + kind(err))
		},
		Lost: func(err error) {
			c.lost = err
			if _, again := c.Tokens(t.Context(), []string{"jobs"}); !errors.Is(again, lease.ErrNotLeader) {
				t.Errorf("when the loss is told, Tokens returns %v", again)
			}
			c.tell("lost: " + kind(err))
		},
	}, append([]lease.Term{lease.TTL(9 * time.Second)}, terms...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func kind(err error) string {
	for _, known := range []error{lease.ErrReleased, lease.ErrLeaseLost, context.Canceled, errLost} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "?"
}

func (c *candidate) tell(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, what)
}

// wantTold compares the callbacks since the last call, after all goroutines are idle.
func (c *candidate) wantTold(want ...string) {
	c.t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.told, want) {
		c.t.Errorf("told %q, want %q", c.told, want)
	}
	c.told = nil
}

// run starts the election, and returns a function that ends it.
func (c *candidate) run(leases *lease.Leases) (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, leases) }()
	synctest.Wait()
	return func() {
		c.t.Helper()
		cancel()
		if err := <-ended; err != nil {
			c.t.Errorf("Run: %v", err)
		}
	}
}

// token returns the token that a write would present. 0 stands for an error, which token compares with NotLeaderError.
func (c *candidate) token() int64 {
	c.t.Helper()
	got, err := c.Tokens(c.t.Context(), []string{"books", "jobs"})
	var no *lease.NotLeaderError
	switch {
	case err == nil && len(got) == 1 && got[0].Name == "jobs":
		return got[0].Value
	case len(got) > 0 || !errors.As(err, &no) || no.Key != "jobs" || !errors.Is(err, lease.ErrNotLeader) || c.IsLeader():
		c.t.Errorf("Tokens: %v, %v; leads: %v", got, err, c.IsLeader())
	}
	return 0
}
