package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/child"
)

// A relay passes the signals that this process gets on to a command. Before the child has started, a signal ends ctx.
type relay struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	signals chan os.Signal

	mu    sync.Mutex
	child *child.Child
}

func newRelay(signals ...os.Signal) *relay {
	r := &relay{signals: make(chan os.Signal, 8)}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	signal.Notify(r.signals, signals...)
	go func() {
		for s := range r.signals {
			r.pass(s)
		}
	}()
	return r
}

func (r *relay) pass(s os.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.child == nil {
		r.cancel(&signalError{s})
		return
	}
	r.child.Forward(s)
}

// start starts a command. The command gets all later signals, including signals that arrive during start.
func (r *relay) start(start func() (*child.Child, error)) (*child.Child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := start()
	if err == nil {
		r.child = c
	}
	return c, err
}

func (r *relay) stop() {
	signal.Stop(r.signals)
	close(r.signals)
	r.cancel(nil)
}
