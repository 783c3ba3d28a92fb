package rewrite

import (
	"sync"
	"sync/atomic"
)

// cache keeps plans by query text, bounded by their number. It is our own, not
// a library, because the root module requires nothing for it and because a hit
// has to cost a lookup under a shared lock: it evicts by second chance (clock),
// where a list in order of use would be written at every read.
type cache struct {
	mu    sync.RWMutex
	slots map[string]*slot
	ring  []*slot
	hand  int
	size  int
}

type slot struct {
	query string
	plan  *Plan
	used  atomic.Bool // since the hand passed last
}

func newCache(size int) *cache {
	return &cache{slots: make(map[string]*slot), size: size}
}

// get returns the plan of query, or nil.
func (c *cache) get(query string) *Plan {
	c.mu.RLock()
	s := c.slots[query]
	c.mu.RUnlock()
	if s == nil {
		return nil
	}
	if !s.used.Load() {
		s.used.Store(true)
	}
	return s.plan
}

// put keeps the plan of query; the first of two racing for one query stays.
func (c *cache) put(query string, p *Plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slots[query] != nil {
		return
	}
	s := &slot{query: query, plan: p}
	c.slots[query] = s
	if len(c.ring) < c.size {
		c.ring = append(c.ring, s)
		return
	}
	for c.ring[c.hand].used.Swap(false) {
		c.hand = (c.hand + 1) % c.size
	}
	delete(c.slots, c.ring[c.hand].query)
	c.ring[c.hand] = s
	c.hand = (c.hand + 1) % c.size
}
