package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence"
)

// A client arrives, takes a token, pauses, and sets the price.
type client struct {
	arrives, pauses time.Duration
	price           int64
}

// newClients returns n clients that arrive within half a second. As garbage collectors and networks make real clients
// do, most pause for a moment, and a few for long, at most 300 ms.
func newClients(n int, seed uint64) []client {
	r := rand.New(rand.NewPCG(seed, 0))
	clients := make([]client, n)
	for i := range clients {
		u := r.Float64()
		clients[i] = client{
			arrives: time.Duration(r.Int64N(int64(500 * time.Millisecond))),
			pauses:  time.Duration(u * u * u * u * float64(300*time.Millisecond)),
			price:   int64(i) + 1,
		}
	}
	return clients
}

// A result holds the outcomes of the clients' writes.
type result struct {
	accepted []write // in the order in which the database applied them
	refused  int     // with sqlfence.ErrStale
	errs     []error // anything else
	final    book
}

// stress starts all clients at once, and calls done for each finished client.
func stress(ctx context.Context, s *service, clients []client, done func()) (*result, error) {
	var (
		r  result
		mu sync.Mutex
		wg sync.WaitGroup
	)
	for _, c := range clients {
		wg.Go(func() {
			w, err := c.run(ctx, s)
			done()
			mu.Lock()
			defer mu.Unlock()
			r.add(w, err)
		})
	}
	wg.Wait()
	var err error
	r.final, err = s.book(ctx)
	return &r, err
}

func (c client) run(ctx context.Context, s *service) (write, error) {
	time.Sleep(c.arrives)
	token, err := s.takeToken(ctx)
	if err != nil {
		return write{}, err
	}
	time.Sleep(c.pauses)
	return s.setPrice(ctx, token, c.price)
}

func (r *result) add(w write, err error) {
	switch {
	case err == nil:
		at, _ := slices.BinarySearchFunc(r.accepted, w, func(a, b write) int { return cmp.Compare(a.order, b.order) })
		r.accepted = slices.Insert(r.accepted, at, w)
	case errors.Is(err, sqlfence.ErrStale):
		r.refused++
	default:
		r.errs = append(r.errs, err)
	}
}

// stale counts the writes that were applied after a write with a higher token: each stale write overwrote newer work.
func (r *result) stale() int {
	n, highest := 0, int64(0)
	for _, w := range r.accepted {
		if w.token < highest {
			n++
		}
		highest = max(highest, w.token)
	}
	return n
}

// newest returns the accepted write with the highest token. The price of this write must be the final price.
func (r *result) newest() write {
	if len(r.accepted) == 0 {
		return write{}
	}
	return slices.MaxFunc(r.accepted, func(a, b write) int { return cmp.Compare(a.token, b.token) })
}

// check returns nil if the run kept what a fence promises.
func (r *result) check() error {
	if len(r.errs) > 0 {
		return fmt.Errorf("%d errors, the first: %w", len(r.errs), r.errs[0])
	}
	if n := r.stale(); n > 0 {
		return fmt.Errorf("%w: %d of them", errStaleLanded, n)
	}
	if r.final.writes != int64(len(r.accepted)) {
		return fmt.Errorf("the database applied %d writes, the clients know of %d", r.final.writes, len(r.accepted))
	}
	if newest := r.newest(); r.final.price != newest.price {
		return fmt.Errorf("final price %d, but the highest token wrote %d", r.final.price, newest.price)
	}
	return nil
}
